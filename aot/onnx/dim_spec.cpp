#include <charconv>

#include "aot/onnx/import.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw error(error_kind::usage, "--dim '" + std::string(text) + "': " + std::string(why) +
                                     "; write NAME=VALUE or NAME=MIN:MAX[:OPT,...]");
}

std::int64_t number(std::string_view whole, std::string_view text) {
  std::int64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < 0)
    refuse(whole, "'" + std::string(text) + "' is not a size");
  return value;
}

}  // namespace

std::pair<std::string, dim_spec> parse_dim_spec(std::string_view text) {
  auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) refuse(text, "there is no NAME=");
  std::string name(text.substr(0, equals));
  std::string_view value = text.substr(equals + 1);
  auto colon = value.find(':');
  if (colon == std::string_view::npos) return {name, number(text, value)};
  dim_range range;
  range.min = number(text, value.substr(0, colon));
  value.remove_prefix(colon + 1);
  colon = value.find(':');
  range.max = number(text, value.substr(0, colon));
  if (range.max < range.min) refuse(text, "the maximum is below the minimum");
  while (colon != std::string_view::npos) {
    value.remove_prefix(colon + 1);
    colon = value.find(',');
    range.optimal.push_back(number(text, value.substr(0, colon)));
    if (range.optimal.back() < range.min || range.optimal.back() > range.max)
      refuse(text, "an optimal value is outside the range");
  }
  return {name, range};
}

std::pair<std::string, std::vector<std::string>> parse_value_spec(std::string_view text) {
  auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw error(error_kind::usage,
                "--value '" + std::string(text) + "': there is no NAME=; write NAME=VALUE[,VALUE...]");
  std::vector<std::string> elements;
  for (std::string_view rest = text.substr(equals + 1); !rest.empty();) {
    auto comma = rest.find(',');
    elements.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return {std::string(text.substr(0, equals)), std::move(elements)};
}

}  // namespace kiln
