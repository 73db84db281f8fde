#include "aot/onnx/bounded_dims.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>

#include "aot/onnx/bounded_masks.hpp"
#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/dim_arithmetic.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

using axes = std::set<std::size_t>;

axes bounded_axes(const shape& type) {
  axes result;
  for (std::size_t i = 0; i < type.rank(); ++i)
    if (is_bounded(type.dims[i])) result.insert(i);
  return result;
}

const shape& in(const instruction& i, std::size_t k) { return i.inputs()[k].type(); }

// Returns true if `axis` is not bounded in any of the first `inputs` inputs.
bool whole(const instruction& i, std::int64_t axis, std::size_t inputs = 1) {
  for (std::size_t k = 0; k < inputs; ++k)
    if (bounded_axes(in(i, k)).contains(static_cast<std::size_t>(normalize_axis(axis, in(i, k).rank())))) return false;
  return true;
}

bool all_whole(const instruction& i, std::span<const std::int64_t> over) {
  return std::ranges::all_of(over, [&](std::int64_t axis) { return whole(i, axis); });
}

bool any(const instruction&) { return true; }

// Returns true if the valid elements stay a prefix of each group of elements: for every bounded axis, the number of
// elements before the axis and the number from the axis on do not change.
bool keeps_places(const instruction& i) {
  auto places = [](const shape& type) {
    std::vector<std::pair<dim, dim>> result;
    for (std::size_t axis : bounded_axes(type)) {
      dim before = 1, from = 1;
      for (std::size_t k = 0; k < type.rank(); ++k)
        (k < axis ? before : from) = (k < axis ? before : from) * type.dims[k];
      result.emplace_back(before, from);
    }
    return result;
  };
  return places(in(i, 0)) == places(i.outputs()[0]);
}

// Returns true if the slice takes elements in ascending order and counts from the beginning. Then the valid elements of
// the result are a prefix.
bool goes_forward(const instruction& i) {
  const auto& op = *i.op().get_if<slice>();
  for (std::size_t axis : bounded_axes(in(i, 0)))
    if (op.starts[axis] < 0 || op.steps[axis] < 1) return false;
  return true;
}

// Check for a matrix product: returns true if the axis that it sums over is not bounded.
bool free_rows(const instruction& i) {
  const auto& op = *i.op().get_if<dot>();
  return whole(i, op.transpose_a ? -2 : -1);
}

bool batch_only(const instruction& i) {
  axes bounded_along = bounded_axes(in(i, 0));
  return std::ranges::all_of(bounded_along, [](std::size_t axis) { return axis == 0; }) &&
         std::ranges::all_of(std::span(i.inputs()).subspan(1), [](value v) { return bounded_axes(v.type()).empty(); });
}

// Check for attention: returns true if the keys are not bounded. Queries and batch entries may be, because they are
// independent of each other.
bool whole_keys(const instruction& i) {
  for (std::size_t k = 0; k < i.inputs().size(); ++k) {
    const auto rank = in(i, k).rank();
    const auto bounded_along = bounded_axes(in(i, k));
    if (rank > 0 && bounded_along.contains(rank - 1)) return false;
    if ((k == 1 || k == 2) && rank > 1 && bounded_along.contains(rank - 2)) return false;
  }
  return true;
}

bool keeps_bounded_sizes(const instruction& i) {
  return std::ranges::all_of(bounded_axes(in(i, 0)),
                             [&](std::size_t axis) { return in(i, 0).dims[axis] == i.outputs()[0].dims[axis]; });
}

// Check for kernels of the library: of these, only RoiAlign supports bounded axes, because it computes each region
// separately.
bool independent_regions(const instruction& i) {
  return i.op().get_if<code_object>()->symbol == "RoiAlign" && bounded_axes(in(i, 0)).empty() &&
         bounded_axes(in(i, 1)) == axes{0};
}

// Operations that support bounded axes. Each has a check that returns true if the instruction computes element by
// element along its bounded axes. Operations that are not listed do not support bounded axes.
struct row {
  std::string_view operation;
  bool (*place_by_place)(const instruction&);
};
constexpr row rows[] = {
    {"convert", any},
    {"bit_cast", any},
    {"broadcast", any},
    {"transpose", any},
    {"iota", any},
    {"reshape", keeps_places},
    {"slice", goes_forward},
    {"concat", [](const instruction& i) { return whole(i, i.op().get_if<concat>()->axis, i.inputs().size()); }},
    // Indices are counted from the beginning (from_beginning) and refer to valid elements only.
    {"gather", any},
    {"gather_elements", any},
    {"gather_nd", [](const instruction& i) { return !bounded_axes(in(i, 1)).contains(in(i, 1).rank() - 1); }},
    {"code_object", independent_regions},
    {"dot", free_rows},
    {"convolution", batch_only},
    {"transposed_convolution", batch_only},
    {"attention", whole_keys},
    {"resize", keeps_bounded_sizes},
    {"pad", keeps_bounded_sizes},
    {"pooling", batch_only},
    {"reduce", [](const instruction& i) { return all_whole(i, i.op().get_if<reduce>()->axes); }},
    {"normalize", [](const instruction& i) { return all_whole(i, i.op().get_if<normalize>()->axes); }},
    {"arg_reduce", [](const instruction& i) { return whole(i, i.op().get_if<arg_reduce>()->axis); }},
    {"softmax", [](const instruction& i) { return whole(i, i.op().get_if<softmax>()->axis); }},
    {"top_k", [](const instruction& i) { return whole(i, i.op().get_if<top_k>()->axis); }},
    {"cumulative_sum", [](const instruction& i) { return whole(i, i.op().get_if<cumulative_sum>()->axis); }},
};

bool place_by_place(const instruction& i) {
  if (i.op().is<elementwise>()) return true;
  auto found = std::ranges::find(rows, i.op().name(), &row::operation);
  return found != std::end(rows) && found->place_by_place(i);
}

bool is_concerned(const instruction& i) {
  auto has_count = [](const shape& s) { return !bounded_axes(s).empty(); };
  return std::ranges::any_of(i.inputs(), [&](value v) { return has_count(v.type()); }) ||
         std::ranges::any_of(i.outputs(), has_count);
}

// Checks what grows_with_counts() does by evaluating the expression for each value of the count. Possible only if there
// is one count.
bool grows_with_count(const dim& d, std::span<const bounded_dim> counts) {
  constexpr std::int64_t most_tried = 1 << 16;
  const auto symbols = d.symbols();
  auto count = std::ranges::find_if(
      counts, [&](const bounded_dim& each) { return symbols == std::set<std::string>{each.symbol.str()}; });
  if (count == counts.end() || !count->most.is_static() || count->most.value() > most_tried) return false;
  std::int64_t before = 0;
  for (std::int64_t k = 0; k <= count->most.value(); ++k) {
    const dim size = d.substitute(dim_bindings{{count->symbol.str(), k}});
    if (!size.is_static() || size.value() < before) return false;
    before = size.value();
  }
  return true;
}

// Returns the counts that this module computes.
std::vector<bounded_dim> counts_of(const import_state& state, const module& m) {
  std::set<const instruction*> here;
  for (const instruction& i : m.instructions()) here.insert(&i);
  std::vector<bounded_dim> result;
  std::ranges::copy_if(state.bounded, std::back_inserter(result),
                       [&](const bounded_dim& each) { return here.contains(each.count.producer); });
  return result;
}

// Refuses instructions that combine elements along a bounded axis. Instructions in `masked` are exempt.
void check_uses(const module& m, std::span<const bounded_dim> counts, const std::set<const instruction*>& masked) {
  for (const instruction& i : m.instructions()) {
    if (!is_concerned(i)) continue;
    const std::string who = i.origin().empty() ? std::string(i.op().name()) : i.origin();
    std::string what = "'" + who + "' needs the size of a result that depends on data: ";
    auto known_here = [&](const std::string& symbol) {
      return !symbol.starts_with(count_prefix) ||
             std::ranges::any_of(counts, [&](const bounded_dim& each) { return each.symbol.str() == symbol; });
    };
    for (const shape& s : i.outputs())
      for (const dim& d : s.dims)
        if (!std::ranges::all_of(d.symbols(), known_here))
          refuse(what + s.str() +
                 " can be used only in the body of an If or Loop, or the graph, that computes its size");
    for (const shape& s : i.outputs())
      for (const dim& d : s.dims)
        if (is_bounded(d) && !grows_with_counts(d) && !grows_with_count(d, counts))
          refuse(what + "a dimension of " + d.str() + " is not supported");
    if (!place_by_place(i) && !masked.contains(&i))
      refuse(what + std::string(i.op().name()) + " does not work element by element along that axis");
  }
}

// Returns an emitter that appends to `main`. Counts are values of the module. Every other symbol is an open dimension;
// its value is computed as the sum of a tensor of ones of that size.
dim_emitter appending(const import_state& state, module& main) {
  auto number = [&main](std::int64_t x) { return main.add_constant(literal::from_int64({x})); };
  auto symbol = [&state, &main, number](const std::string& name) {
    for (const bounded_dim& each : state.bounded)
      if (each.symbol.str() == name) return each.count;
    value ones = main.add(broadcast{{dim::symbol(name)}}, {number(1)});
    return main.add(reduce{reduction_kind::sum, {0}, true}, {ones});
  };
  auto add = [&main](operation op, std::vector<value> inputs) { return main.add(std::move(op), std::move(inputs)); };
  return {add, number, symbol};
}

// Replaces the counts in all shapes by their bounds.
void take_capacities(const import_state& state, module& main) {
  for (instruction& i : main.instructions()) {
    if (i.op().is<constant>() || i.op().is<parameter>()) continue;
    attribute_list fields = i.op().attributes();
    bool changed = false;
    for (auto& field : fields)
      if (auto* dims = std::get_if<std::vector<dim>>(&field.second))
        for (dim& d : *dims)
          if (is_bounded(d)) d = capacity_of(state, d), changed = true;
    if (changed) main.set_operation(&i, make_operation(i.op().name(), fields));
    else if (is_concerned(i)) main.set_operation(&i, i.op());
  }
}

// Marks the outputs with bounded axes. Their counts become outputs "NAME.count", where NAME is the first that needs it.
void mark_outputs(const import_state& state, module& main) {
  std::vector<value> outputs = main.outputs(), counts;
  std::vector<std::string> names = main.output_names(), added;
  const dim_emitter emit = appending(state, main);
  // Keyed by the text of the expression.
  std::map<std::string, value> known;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto dims = outputs[i].type().dims;
    for (std::size_t axis : bounded_axes(outputs[i].type())) {
      auto [found, fresh] = known.try_emplace(dims[axis].str());
      if (fresh) {
        found->second = value_of_dim(dims[axis], emit);
        counts.push_back(found->second);
        added.push_back(names[i] + ".count");
        while (std::ranges::count(names, added.back()) || std::ranges::count(added, added.back()) > 1)
          added.back() += "_";
      }
      outputs[i] = main.add(bounded{static_cast<std::int64_t>(axis)}, {outputs[i], found->second});
    }
  }
  outputs.insert(outputs.end(), counts.begin(), counts.end());
  names.insert(names.end(), added.begin(), added.end());
  main.set_outputs(std::move(outputs), std::move(names));
}

// A guard may assume that two data-dependent sizes are equal only if their bounds are equal.
void check_guards(import_state& state) {
  std::erase_if(state.result.guards, [&](const dim_guard& g) {
    if (!is_bounded(g.a) && !is_bounded(g.b)) return false;
    const dim a = capacity_of(state, g.a), b = capacity_of(state, g.b);
    if (!(a == b))
      refuse("'" + g.why + "' needs equal sizes, but they depend on data: up to " + a.str() + " and " + b.str());
    return true;
  });
}

}  // namespace

void settle_bounded_dims(import_state& state) {
  if (state.bounded.empty()) return;
  // A body module comes after the module that uses it, and the shapes of an instruction with a body follow from the
  // body. So visit the modules in reverse order.
  for (module& m : std::views::reverse(state.result.modules())) {
    const std::vector<bounded_dim> counts = counts_of(state, m);
    std::vector<instruction*> mixing;
    for (instruction& i : m.instructions())
      if (is_concerned(i) && i.bodies().empty() && !place_by_place(i) && !state.padding_allowed.contains(&i))
        mixing.push_back(&i);
    std::set<const instruction*> masked = state.padding_allowed;
    // In the main graph another attempt gives such operators tensors of exact sizes (sizes_of_data.hpp).
    const bool in_body = &m != &state.result.main();
    for (instruction* i : mixing)
      if (i->op().is<reshape>()) masked.merge(reshape_valid(state, m, *i, counts));
      else if (const instruction* now = mask_padding(m, *i, counts, in_body)) masked.insert(now);
    check_uses(m, counts, masked);
    if (&m == &state.result.main()) mark_outputs(state, m);
    take_capacities(state, m);
    m.erase_dead();
  }
  check_guards(state);
}

}  // namespace kiln::onnx_import
