#include "aot/onnx/bounded_dims.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "aot/onnx/bounded_masks.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

using axes = std::set<std::size_t>;

bool is_bounded(const dim& d) {
  return !d.is_static() &&
         std::ranges::any_of(d.symbols(), [](const std::string& s) { return s.starts_with(count_prefix); });
}

axes bounded_axes(const shape& type) {
  axes result;
  for (std::size_t i = 0; i < type.rank(); ++i)
    if (is_bounded(type.dims[i])) result.insert(i);
  return result;
}

const shape& in(const instruction& i, std::size_t k) { return i.inputs()[k].type(); }

// True if `axis` is not bounded, in the first `inputs` inputs.
bool whole(const instruction& i, std::int64_t axis, std::size_t inputs = 1) {
  for (std::size_t k = 0; k < inputs; ++k)
    if (bounded_axes(in(i, k)).contains(static_cast<std::size_t>(normalize_axis(axis, in(i, k).rank())))) return false;
  return true;
}

bool all_whole(const instruction& i, std::span<const std::int64_t> over) {
  return std::ranges::all_of(over, [&](std::int64_t axis) { return whole(i, axis); });
}

bool any(const instruction&) { return true; }

// True if bounded axes keep the numbers of elements before and behind them.
bool keeps_places(const instruction& i) {
  auto places = [](const shape& type) {
    std::vector<std::array<dim, 3>> result;
    for (std::size_t axis : bounded_axes(type)) {
      dim before = 1, behind = 1;
      for (std::size_t k = 0; k < type.rank(); ++k)
        (k < axis ? before : behind) = (k < axis ? before : behind) * (k == axis ? dim(1) : type.dims[k]);
      result.push_back({before, type.dims[axis], behind});
    }
    return result;
  };
  return places(in(i, 0)) == places(i.outputs()[0]);
}

bool begins_at_zero(const instruction& i) {
  const auto& op = *i.op().get_if<slice>();
  for (std::size_t axis = 0; axis < op.lengths.size(); ++axis) {
    if (!is_bounded(op.lengths[axis]) && !is_bounded(in(i, 0).dims[axis])) continue;
    bool same = in(i, 0).dims[axis].is_static() || in(i, 0).dims[axis] == op.lengths[axis];
    if (op.starts[axis] != 0 || op.steps[axis] != 1 || !same || !is_bounded(op.lengths[axis])) return false;
  }
  return true;
}

// For a product.
bool free_rows(const instruction& i) {
  const auto& op = *i.op().get_if<dot>();
  return whole(i, op.transpose_a ? -2 : -1);
}

bool batch_only(const instruction& i) {
  axes bounded_along = bounded_axes(in(i, 0));
  return std::ranges::all_of(bounded_along, [](std::size_t axis) { return axis == 0; }) &&
         std::ranges::all_of(std::span(i.inputs()).subspan(1), [](value v) { return bounded_axes(v.type()).empty(); });
}

// Operations that support bounded axes, each with a check whether this instruction works element by element along them.
// Operations without a row do not support them.
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
    {"slice", begins_at_zero},
    {"concat", [](const instruction& i) { return whole(i, i.op().get_if<concat>()->axis, i.inputs().size()); }},
    {"gather", [](const instruction& i) { return whole(i, i.op().get_if<gather>()->axis); }},
    {"gather_elements", [](const instruction& i) { return whole(i, i.op().get_if<gather_elements>()->axis); }},
    {"gather_nd",
     [](const instruction& i) {
       return bounded_axes(in(i, 0)).empty() && !bounded_axes(in(i, 1)).contains(in(i, 1).rank() - 1);
     }},
    {"dot", free_rows},
    {"convolution", batch_only},
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

// Instructions in `masked` may combine elements along a bounded axis.
void check_uses(const module& m, bool is_main, const std::set<const instruction*>& masked) {
  for (const instruction& i : m.instructions()) {
    if (!is_concerned(i)) continue;
    std::string what = "'" + i.origin() + "' needs the size of a result that depends on data: ";
    if (!is_main) refuse(what + "bodies of If and Loop cannot");
    for (const shape& s : i.outputs())
      for (const dim& d : s.dims)
        if (is_bounded(d) && d.symbols() != std::set{d.str()})
          refuse(what + "a dimension of " + d.str() + " is not supported");
    if (!place_by_place(i) && !masked.contains(&i))
      refuse(what + std::string(i.op().name()) + " does not work element by element along that axis");
  }
}

}  // namespace

void need_known_dims(const shape& type) {
  if (!type.is_static())
    refuse("a result whose size depends on data needs inputs without open dimensions; fix them with --dim");
}

value shortened(node& n, value data, std::int64_t axis, value count) {
  import_state& state = n.owner.state();
  need_known_dims(data.type());
  if (&n.b.target() != &state.result.main())
    refuse("a result whose size depends on data is not supported in the body of If or Loop");
  auto known = std::ranges::find(state.bounded, count, &bounded_dim::count);
  if (known == state.bounded.end()) {
    dim symbol = dim::symbol(std::string(count_prefix) + std::to_string(state.bounded.size()));
    n.b.set_count(symbol, count);
    state.known.facts.set_range(symbol.str(), 0, data.type().dims[static_cast<std::size_t>(axis)].value());
    known = state.bounded.insert(known, {symbol, count, data.type().dims[static_cast<std::size_t>(axis)].value()});
  }
  return n.b.slice_axis(data, axis, 0, known->symbol);
}

void settle_bounded_dims(import_state& state) {
  if (state.bounded.empty()) return;
  program& p = state.result;
  module& main = p.main();
  std::vector<instruction*> mixing;
  for (instruction& i : main.instructions())
    if (is_concerned(i) && !place_by_place(i)) mixing.push_back(&i);
  std::set<const instruction*> masked;
  for (instruction* i : mixing)
    if (const instruction* now = mask_padding(main, *i, state.bounded)) masked.insert(now);
  for (const module& m : p.modules()) check_uses(m, &m == &main, masked);
  std::vector<value> outputs = main.outputs(), counts;
  std::vector<std::string> names = main.output_names(), added;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t axis : bounded_axes(outputs[i].type())) {
      const bounded_dim& c = *std::ranges::find(state.bounded, outputs[i].type().dims[axis], &bounded_dim::symbol);
      if (std::ranges::find(counts, c.count) == counts.end()) {
        counts.push_back(c.count);
        added.push_back(names[i] + ".count");
        while (std::ranges::count(names, added.back()) || std::ranges::count(added, added.back()) > 1)
          added.back() += "_";
      }
      outputs[i] = main.add(bounded{static_cast<std::int64_t>(axis)}, {outputs[i], c.count});
    }
  }
  outputs.insert(outputs.end(), counts.begin(), counts.end());
  names.insert(names.end(), added.begin(), added.end());
  main.set_outputs(std::move(outputs), std::move(names));
  dim_bindings largest;
  for (const bounded_dim& c : state.bounded) {
    p.symbols[c.symbol.str()] = {0, c.most, {}};
    largest[c.symbol.str()] = c.most;
  }
  p = p.bind(largest);
  p.main().erase_dead();
}

}  // namespace kiln::onnx_import
