#include "bench/session/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace kiln::bench {

std::optional<measurement> parse_measurement(int argc, char** argv, const std::string& device) {
  if (argc < 5) return std::nullopt;
  measurement m{.file = argv[2], .ranges = parse_ranges(argv[3]), .count = std::atoi(argv[4])};
  if (m.ranges.empty() || m.count < 1) return std::nullopt;
  m.options.device = device;
  if (argc > 5) m.options.cache.folder = argv[5];
  else m.options.cache.disabled = true;
  m.options.specialization = specialization::off;
  return m;
}

size_ranges parse_ranges(std::string_view text) {
  size_ranges result;
  while (!text.empty()) {
    const std::string one(text.substr(0, text.find(',')));
    const std::size_t equals = one.find('='), colon = one.find(':');
    if (equals == std::string::npos || colon == std::string::npos) return {};
    result[one.substr(0, equals)] = {std::strtoll(one.c_str() + equals + 1, nullptr, 10),
                                     std::strtoll(one.c_str() + colon + 1, nullptr, 10)};
    text.remove_prefix(std::min(text.size(), one.size() + 1));
  }
  return result;
}

dim_bindings random_sizes(const program& p, const size_ranges& ranges, std::mt19937& engine) {
  dim_bindings sizes;
  for (const auto& [symbol, range] : p.symbols) sizes[symbol] = std::max<std::int64_t>(range.min, 1);
  for (const auto& [name, range] : ranges)
    sizes[name] = std::uniform_int_distribution<std::int64_t>(range.first, range.second)(engine);
  return sizes;
}

std::string str(const dim_bindings& sizes) {
  std::string text;
  for (const auto& [name, size] : sizes) text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, size);
  return text;
}

literal random_data(const shape& type) {
  std::mt19937 engine(3);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> values(static_cast<std::size_t>(type.element_count()));
  for (double& v : values) v = is_float(type.type) ? normal(engine) : static_cast<double>(engine() % 2);
  return literal::from_doubles(type, values);
}

}  // namespace kiln::bench
