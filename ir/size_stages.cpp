#include "ir/size_stages.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln {
namespace {

struct sized_value {
  std::string symbol;
  std::size_t output = 0, input = 0;  // of the main module, and of its `data_sizes`
};

const data_sizes* mark_of(value v) { return v.producer->op().get_if<data_sizes>(); }

// Sizes that already have a value are left away.
std::vector<sized_value> sized_values(const program& p) {
  std::vector<sized_value> result;
  const auto& outputs = p.main().outputs();
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (const auto* op = mark_of(outputs[o]))
      for (std::size_t i = 0; i < op->sizes.size(); ++i)
        if (op->sizes[i].is_symbol()) result.push_back({op->sizes[i].str(), o, 1 + i});
  return result;
}

// The part of `p` that computes the chosen sizes.
program part_for(const program& p, std::span<const sized_value> chosen) {
  program part = p.clone();
  module& main = part.main();
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (const sized_value& each : chosen) {
    outputs.push_back(main.outputs()[each.output].producer->inputs()[each.input]);
    names.push_back(each.symbol);
  }
  main.set_outputs(std::move(outputs), std::move(names));
  main.erase_dead();
  // erase_dead() keeps parameters. Inputs that the part does not read need not be there when it runs.
  for (value v : main.parameters())
    if (!module::has_uses(v.producer)) main.erase(v.producer);
  part.erase_unreachable_modules();
  part.erase_unused_kernels();
  const std::set<std::string> used = symbols_in(part);
  std::erase_if(part.symbols, [&](const auto& each) { return !used.contains(each.first); });
  std::erase_if(part.guards, [&](const dim_guard& g) {
    return !std::ranges::includes(used, g.a.symbols()) || !std::ranges::includes(used, g.b.symbols());
  });
  return part;
}

}  // namespace

std::set<std::string> symbols_in(const program& p) {
  std::set<std::string> found;
  auto add = [&](const std::vector<dim>& dims) {
    for (const dim& d : dims)
      if (!d.is_static()) found.merge(d.symbols());
  };
  for (const module& m : p.modules())
    for (const instruction& i : m.instructions()) {
      for (const shape& s : i.outputs()) add(s.dims);
      // The attributes of a constant contain a hash of all of its bytes, which is expensive.
      if (i.op().is<constant>()) continue;
      for (const auto& [field, attribute] : i.op().attributes())
        if (const auto* dims = std::get_if<std::vector<dim>>(&attribute)) add(*dims);
    }
  return found;
}

std::vector<std::string> data_decided_sizes(const program& p) {
  std::vector<std::string> result;
  for (sized_value& each : sized_values(p)) result.push_back(std::move(each.symbol));
  return result;
}

bool has_data_decided_sizes(const program& p) {
  return std::ranges::any_of(p.main().outputs(), [](value v) { return mark_of(v) != nullptr; });
}

std::set<std::string> inputs_deciding_sizes(const program& p) {
  std::set<std::string> names;
  std::set<const instruction*> seen;
  std::vector<const instruction*> open;
  auto visit = [&](value v) {
    if (seen.insert(v.producer).second) open.push_back(v.producer);
  };
  for (const sized_value& each : sized_values(p)) visit(p.main().outputs()[each.output].producer->inputs()[each.input]);
  while (!open.empty()) {
    const instruction& i = *open.back();
    open.pop_back();
    if (const auto* input = i.op().get_if<parameter>()) names.insert(input->name_in_module);
    for (value v : i.inputs()) visit(v);
  }
  return names;
}

std::vector<size_stage> size_stages(const program& p) {
  std::vector<size_stage> stages;
  std::vector<sized_value> left = sized_values(p);
  while (!left.empty()) {
    std::vector<sized_value> now, later;
    for (const sized_value& each : left) {
      const program part = part_for(p, std::span(&each, 1));
      const bool waits =
          std::ranges::any_of(left, [&](const sized_value& other) { return part.symbols.contains(other.symbol); });
      (waits ? later : now).push_back(each);
    }
    if (now.empty())
      throw error(error_kind::invalid_model, "the size '" + later.front().symbol + "' depends on itself");
    size_stage stage{part_for(p, now), {}};
    for (sized_value& each : now) stage.symbols.push_back(std::move(each.symbol));
    stages.push_back(std::move(stage));
    left = std::move(later);
  }
  return stages;
}

}  // namespace kiln
