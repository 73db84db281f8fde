#include "bench/session/compiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "bench/session/difference.hpp"
#include "bench/session/sizes.hpp"
#include "ir/error.hpp"
#include "session/session.hpp"

namespace kiln::bench {
namespace {

// A set of sizes with which the model must not be run, because a tensor of them would be too large, is only planned.
constexpr std::size_t most_arena_bytes = std::size_t{1} << 28;

std::vector<dim_bindings> sizes_to_ask(const program& p, std::int64_t largest, int count) {
  std::mt19937 engine(1);
  const auto highest = [&](const dim_range& r) { return std::max(r.min, std::min(r.max, largest)); };
  const auto random = [&] {
    dim_bindings sizes;
    for (const auto& [name, range] : p.symbols)
      sizes[name] = std::uniform_int_distribution<std::int64_t>(range.min, highest(range))(engine);
    return sizes;
  };
  std::vector<dim_bindings> result(3);
  for (const auto& [name, range] : p.symbols) {
    result[0][name] = std::clamp<std::int64_t>(7, range.min, highest(range));
    result[1][name] = range.min, result[2][name] = highest(range);
  }
  for (const auto& [name, range] : p.symbols)
    for (std::int64_t size : std::set<std::int64_t>{0, 1, 2, range.min, highest(range)}) {
      if (size < range.min || size > range.max) continue;
      for (dim_bindings sizes : {result[1], random()}) sizes[name] = size, result.push_back(std::move(sizes));
    }
  for (int i = 0; i < count; ++i) result.push_back(random());
  return result;
}

bool has_empty_tensor(const program& bound) {
  const auto is_empty = [](const shape& s) { return s.is_static() && s.element_count() == 0; };
  for (const module& m : bound.modules())
    for (const instruction& i : m.instructions())
      if (std::ranges::any_of(i.outputs(), is_empty)) return true;
  return false;
}

std::vector<literal> run(instance& at) {
  std::vector<literal> inputs;
  for (const plan_port& port : at.executable().plan().inputs) inputs.push_back(random_data(port.type));
  return at.run(inputs);
}

}  // namespace

int measure_compiles(int argc, char** argv, const std::string& device) {
  if (argc < 5) return 2;
  const std::string file = argv[2];
  const std::int64_t largest = std::atoll(argv[3]);
  session_options options{.device = device};
  if (argc > 5) options.cache.folder = argv[5];
  else options.cache.disabled = true;
  const bool runs = argc <= 6 || argv[6] != std::string_view("plans");
  options.specialization = specialization::eager;
  session specialized(file, options);
  options.specialization = specialization::off;
  std::size_t misses = 0;
  options.observer = [&](const session_event& event) {
    if (const auto* e = std::get_if<session_events::finalized>(&event)) misses += e->report.misses;
  };
  session general(file, options);

  std::shared_ptr<instance> first;  // made before there is a template
  std::size_t asked = 0, refused = 0, compiled = 0, alone = 0, compared = 0, wrong = 0;
  for (const dim_bindings& sizes : sizes_to_ask(general.portable(), largest, std::atoi(argv[4]))) {
    misses = 0;
    std::shared_ptr<instance> at;
    try {
      at = general.at(sizes);
    } catch (const error& e) {
      refused += 1;
      continue;
    }
    if (asked++ == 0) first = at;
    if (at == first) continue;
    const auto say = [&](const std::string& what) { fmt::print("{}: {}\n", str(sizes), what); };
    if (misses) compiled += misses, say(fmt::format("{} kernels compiled", misses));
    if (at->has_own_kernels()) alone += 1, say("a plan of its own");
    if (!runs) continue;
    const bool smallest = std::ranges::all_of(
        general.portable().symbols, [&](const auto& symbol) { return sizes.at(symbol.first) == symbol.second.min; });
    if (!(smallest || has_empty_tensor(at->bound())) || at->executable().plan().arena_bytes > most_arena_bytes)
      continue;
    compared += 1;
    const double differs = difference(run(*at), run(*specialized.at(sizes)));
    if (!(differs <= 1e-3)) wrong += 1, say(fmt::format("differs by {:.1e}", differs));
  }
  fmt::print(
      "{} sets of sizes ({} others were refused), {} kernels compiled, {} plans of their own; {} compared "
      "with specialized kernels, {} of them differ\n",
      asked, refused, compiled, alone, compared, wrong);
  return compiled || wrong;
}

}  // namespace kiln::bench
