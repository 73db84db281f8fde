#include "aot/passes/simplify_movement.hpp"

#include <algorithm>

#include "aot/passes/facts.hpp"
#include "aot/passes/reshape_groups.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/passes/scattered_rows.hpp"

namespace kiln {
namespace {

using match::any;
using match::op;

auto keep(std::string name) {
  return [name](rewriter&, value, const match::captures& found) { return found[name]; };
}

bool same_dims(value v) { return v.type().dims == v.producer->inputs()[0].type().dims; }

value composed_transposes(rewriter& write, value root, const match::captures& found) {
  const auto& outer = root.producer->op().get_if<transpose>()->permutation;
  const auto& inner = found["inner"].producer->op().get_if<transpose>()->permutation;
  std::vector<std::int64_t> both;
  for (std::int64_t axis : outer) both.push_back(inner[static_cast<std::size_t>(axis)]);
  return write.transpose_by(found["x"], both);
}

// transpose(reshape(transpose(x))): if the outer transpose keeps the regrouped axes together, it is moved before the
// reshape and merges with the inner one.
value transposes_around_merge(rewriter& write, value root, const match::captures& found) {
  value inner = found["inner"], merged = found["merged"];
  auto groups = reshape_groups(inner.type().dims, merged.type().dims);
  if (!groups) return {};
  std::vector<std::size_t> order;  // of the axes that belong to groups
  for (std::int64_t axis : root.producer->op().get_if<transpose>()->permutation)
    if (!(merged.type().dims[static_cast<std::size_t>(axis)] == dim(1)))
      order.push_back(static_cast<std::size_t>(axis));
  std::vector<std::int64_t> apart;
  for (std::size_t i = 0; i < order.size();) {
    auto group =
        std::find_if(groups->begin(), groups->end(), [&](const reshape_group& g) { return g.to[0] == order[i]; });
    if (group == groups->end() || order.size() - i < group->to.size() ||
        !std::equal(group->to.begin(), group->to.end(), order.begin() + static_cast<std::ptrdiff_t>(i)))
      return {};
    apart.insert(apart.end(), group->from.begin(), group->from.end());
    i += group->to.size();
  }
  for (std::size_t axis = 0; axis < inner.type().rank(); ++axis)
    if (inner.type().dims[axis] == dim(1)) apart.push_back(static_cast<std::int64_t>(axis));
  return write.reshape_to(write.transpose_by(inner, apart), root.type().dims);
}

value transpose_of_nothing(rewriter& write, value root, const match::captures& found) {
  const auto& permutation = root.producer->op().get_if<transpose>()->permutation;
  return moves_nothing(found["x"].type().dims, permutation) ? write.transpose_by(found["x"], permutation) : value{};
}

// transpose(broadcast(x)) → broadcast(transpose(x)).
value broadcast_after_transpose(rewriter& write, value root, const match::captures& found) {
  const auto& permutation = root.producer->op().get_if<transpose>()->permutation;
  value x = found["x"];
  x = write.reshape_to(x, padded_dims(x.type().dims, permutation.size()));
  return write.broadcast_to(write.transpose_by(x, permutation), root.type().dims);
}

// slice(broadcast(x)) → broadcast(slice(x)). Broadcast axes do not need the slice.
value broadcast_after_slice(rewriter& write, value root, const match::captures& found) {
  slice inner = *root.producer->op().get_if<slice>();
  value x = write.reshape_to(found["x"], padded_dims(found["x"].type().dims, inner.starts.size()));
  for (std::size_t i = 0; i < inner.starts.size(); ++i)
    if (x.type().dims[i] == dim(1)) inner.starts[i] = 0, inner.lengths[i] = 1, inner.steps[i] = 1;
  for (const dim& d : root.type().dims)
    if (d == dim(0)) return {};
  return write.broadcast_to(write.add(inner, {x}), root.type().dims);
}

// reshape(broadcast(x)) → broadcast(reshape(x)) if x has one element, or if each group of axes is broadcast as a whole
// or not at all.
value broadcast_after_reshape(rewriter& write, value root, const match::captures& found) {
  value x = found["x"];
  const auto& wide = found["wide"].type().dims;
  auto narrow = padded_dims(x.type().dims, wide.size());
  auto groups = reshape_groups(wide, root.type().dims);
  if (!groups) return {};
  std::vector<dim> dims(root.type().rank(), dim(1));
  for (const reshape_group& group : *groups) {
    auto kept =
        std::count_if(group.from.begin(), group.from.end(), [&](std::size_t i) { return narrow[i] == wide[i]; });
    if (kept == 0) continue;
    if (kept != static_cast<std::ptrdiff_t>(group.from.size())) return {};
    for (std::size_t i : group.to) dims[i] = root.type().dims[i];
  }
  if (dims == root.type().dims) return {};
  return write.broadcast_to(write.reshape_to(x, dims), root.type().dims);
}

// broadcast(reshape(x)) → broadcast(x) if the reshape only adds leading 1s.
value broadcast_without_leading_ones(rewriter& write, value root, const match::captures& found) {
  value x = found["x"], padded = found["padded"];
  if (x.type().rank() >= padded.type().rank() || padded_dims(x.type().dims, padded.type().rank()) != padded.type().dims)
    return {};
  return write.broadcast_to(x, root.type().dims);
}

value whole_slice(rewriter&, value root, const match::captures& found) {
  const auto& s = *root.producer->op().get_if<slice>();
  bool forward = std::all_of(s.steps.begin(), s.steps.end(), [](std::int64_t step) { return step == 1; });
  // A step other than 1 along a single element does not matter by itself, but a negative step makes the start
  // significant.
  return forward && same_dims(root) ? found["x"] : value{};
}

value composed_slices(rewriter& write, value root, const match::captures& found) {
  const auto& outer = *root.producer->op().get_if<slice>();
  slice both = *found["inner"].producer->op().get_if<slice>();
  for (std::size_t i = 0; i < both.starts.size(); ++i) {
    both.starts[i] += outer.starts[i] * both.steps[i];
    both.steps[i] *= outer.steps[i];
    both.lengths[i] = outer.lengths[i];
  }
  return write.add(both, {found["x"]});
}

// A reshape splits `axis` into the axes `split` of `dims`, and a slice selects a range of `axis`. Returns the number of
// elements per step of the first of the split axes if the slice begins and ends at such steps and the axis is a
// multiple of it.
std::optional<std::int64_t> whole_parts(const slice& s, std::size_t axis, const dim& whole,
                                        const std::vector<dim>& dims, const std::vector<std::size_t>& split) {
  std::int64_t part = 1;
  for (std::size_t i = 1; i < split.size(); ++i) {
    if (!dims[split[i]].is_static()) return std::nullopt;
    part *= dims[split[i]].value();
  }
  const bool fits =
      s.steps[axis] == 1 && part > 0 && s.starts[axis] % part == 0 && whole.is_static() && whole.value() % part == 0;
  return fits ? std::optional(part) : std::nullopt;
}

// reshape(slice(x)) → slice(reshape(x)), if the reshape does not touch the sliced axes, or splits one into parts of
// which the slice takes whole ones. A reshape directly behind the producer of x costs nothing.
value slice_after_reshape(rewriter& write, value root, const match::captures& found) {
  const slice& s = *found["part"].producer->op().get_if<slice>();
  const auto& whole = found["x"].type().dims;
  auto groups = reshape_groups(s.lengths, root.type().dims);
  if (!groups || only_unit_dims_change(s.lengths, root.type().dims)) return {};
  slice moved;
  std::vector<dim> dims;
  auto add = [&](const dim& extent, std::int64_t start, const dim& length, std::int64_t step) {
    dims.push_back(extent);
    moved.starts.push_back(start);
    moved.lengths.push_back(length);
    moved.steps.push_back(step);
  };
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    bool sliced = s.starts[axis] != 0 || s.steps[axis] != 1 || !(s.lengths[axis] == whole[axis]);
    auto group = std::find_if(groups->begin(), groups->end(), [&](const reshape_group& g) {
      return std::find(g.from.begin(), g.from.end(), axis) != g.from.end();
    });
    if (sliced && group != groups->end() && group->from.size() == 1 && group->to.size() > 1) {
      auto part = whole_parts(s, axis, whole[axis], root.type().dims, group->to);
      if (!part) return {};
      add(whole[axis] / dim(*part), s.starts[axis] / *part, root.type().dims[group->to[0]], 1);
      for (std::size_t i = 1; i < group->to.size(); ++i)
        add(root.type().dims[group->to[i]], 0, root.type().dims[group->to[i]], 1);
      continue;
    }
    if (sliced && group != groups->end() && (group->from.size() != 1 || group->to.size() != 1)) return {};
    // A single element was sliced from an axis in the middle of a group that the reshape merges.
    if (sliced && std::ranges::any_of(
                      *groups, [&](const reshape_group& g) { return g.from.front() < axis && axis < g.from.back(); }))
      return {};
    if (sliced) add(whole[axis], s.starts[axis], s.lengths[axis], s.steps[axis]);
    else if (group != groups->end() && group->from.front() == axis)
      for (std::size_t to : group->to) add(root.type().dims[to], 0, root.type().dims[to], 1);
  }
  return write.reshape_to(write.add(moved, {write.reshape_to(found["x"], dims)}), root.type().dims);
}

// A slice that lies within one input of a concat reads that input directly.
value slice_of_concat_input(rewriter& write, value root, const match::captures& found) {
  slice s = *root.producer->op().get_if<slice>();
  const instruction& joined = *found["joined"].producer;
  auto axis = static_cast<std::size_t>(normalize_axis(joined.op().get_if<concat>()->axis, s.starts.size()));
  if (!s.lengths[axis].is_static() || s.lengths[axis].value() <= 0) return {};
  std::int64_t first = s.starts[axis], last = first + (s.lengths[axis].value() - 1) * s.steps[axis];
  if (first > last) std::swap(first, last);
  std::int64_t begin = 0;
  for (value input : joined.inputs()) {
    const dim& length = input.type().dims[axis];
    if (!length.is_static()) return {};
    if (first >= begin && last < begin + length.value()) {
      s.starts[axis] -= begin;
      return write.add(s, {input});
    }
    begin += length.value();
  }
  return {};
}

value no_padding(rewriter&, value root, const match::captures& found) { return same_dims(root) ? found["x"] : value{}; }

// Simplifies a concat of one input, a concat of concats, and inputs without elements.
value simpler_concat(rewriter& write, value root, const match::captures&) {
  const auto& inputs = root.producer->inputs();
  std::int64_t axis = normalize_axis(root.producer->op().get_if<concat>()->axis, root.type().rank());
  std::vector<value> flat;
  for (value v : inputs) {
    const auto* inner = v.producer->op().get_if<concat>();
    bool nested = inner && normalize_axis(inner->axis, v.type().rank()) == axis && has_single_use(write.in(), v);
    if (nested) flat.insert(flat.end(), v.producer->inputs().begin(), v.producer->inputs().end());
    else if (!(v.type().dims[static_cast<std::size_t>(axis)] == dim(0))) flat.push_back(v);
  }
  if (flat.size() == 1) return flat[0];
  return flat == inputs || flat.empty() ? value{} : write.add(concat{axis}, flat);
}

// A gather with one constant index, or with consecutive ones, becomes a slice.
value gather_as_slice(rewriter& write, value root, const match::captures& found) {
  value data = found["data"], indices = found["indices"];
  auto axis = static_cast<std::size_t>(normalize_axis(root.producer->op().get_if<gather>()->axis, data.type().rank()));
  const dim& length = data.type().dims[axis];
  if (!indices.type().is_static() || indices.type().rank() > 1 || indices.type().element_count() == 0) return {};
  std::vector<std::int64_t> picked;
  if (const literal* list = module::constant(indices)) picked = list->to_int64();
  else if (auto same = splat_of(indices); same && indices.type().element_count() == 1)
    picked = {static_cast<std::int64_t>(*same)};
  else return {};
  for (std::int64_t& i : picked) {
    if (i < 0 && !length.is_static()) return {};
    if (i < 0) i += length.value();
  }
  for (std::size_t i = 1; i < picked.size(); ++i)
    if (picked[i] != picked[0] + static_cast<std::int64_t>(i)) return {};
  slice s{std::vector<std::int64_t>(data.type().rank(), 0), data.type().dims,
          std::vector<std::int64_t>(data.type().rank(), 1)};
  s.starts[axis] = picked[0];
  s.lengths[axis] = static_cast<std::int64_t>(picked.size());
  return write.reshape_to(write.add(s, {data}), root.type().dims);
}

std::vector<rule> make_rules() {
  auto x = any().as("x");
  return {
      {"transpose_identity", op<transpose>([](const transpose& t) { return is_identity(t.permutation); }).inputs({x}),
       keep("x")},
      {"transpose_transpose", op<transpose>().inputs({op<transpose>().inputs({x}).as("inner")}), composed_transposes},
      {"transpose_merge_transpose",
       op<transpose>().inputs({op<reshape>().inputs({op<transpose>().as("inner")}).as("merged")}),
       transposes_around_merge},
      {"transpose_nothing", op<transpose>().inputs({x}), transpose_of_nothing},
      {"transpose_broadcast", op<transpose>().inputs({op<broadcast>().inputs({x})}), broadcast_after_transpose},
      {"reshape_identity", op<reshape>().inputs({x}).when(same_dims), keep("x")},
      {"reshape_reshape", op<reshape>().inputs({op<reshape>().inputs({x})}),
       [](rewriter& write, value root, const match::captures& found) {
         return write.reshape_to(found["x"], root.type().dims);
       }},
      {"reshape_slice", op<reshape>().inputs({op<slice>().inputs({x}).as("part")}), slice_after_reshape},
      {"reshape_broadcast", op<reshape>().inputs({op<broadcast>().inputs({x}).as("wide")}), broadcast_after_reshape},
      {"broadcast_identity", op<broadcast>().inputs({x}).when(same_dims), keep("x")},
      {"broadcast_broadcast", op<broadcast>().inputs({op<broadcast>().inputs({x})}),
       [](rewriter& write, value root, const match::captures& found) {
         return write.broadcast_to(found["x"], root.type().dims);
       }},
      {"broadcast_reshape", op<broadcast>().inputs({op<reshape>().inputs({x}).as("padded")}),
       broadcast_without_leading_ones},
      {"broadcast_nothing", op<broadcast>().inputs({x}).when([](value v) {
         return only_unit_dims_change(v.producer->inputs()[0].type().dims, v.type().dims);
       }),
       [](rewriter& write, value root, const match::captures& found) {
         return write.reshape_to(found["x"], root.type().dims);
       }},
      {"slice_whole", op<slice>().inputs({x}), whole_slice},
      {"slice_slice", op<slice>().inputs({op<slice>().inputs({x}).as("inner")}), composed_slices},
      {"slice_broadcast", op<slice>().inputs({op<broadcast>().inputs({x})}), broadcast_after_slice},
      {"slice_concat", op<slice>().inputs({op<concat>().as("joined")}), slice_of_concat_input},
      {"pad_nothing", op<pad>().inputs({x}), no_padding},
      {"concat_simpler", op<concat>(), simpler_concat},
      {"scattered_rows", op<scatter_elements>(),
       [](rewriter& write, value root, const match::captures&) { return scattered_rows(write, root); }},
      {"gather_slice", op<gather>().inputs({any().as("data"), any().as("indices")}), gather_as_slice},
  };
}

}  // namespace

bool simplify_movement::apply(module& m) const {
  static const std::vector<rule> rules = make_rules();
  return apply_rules(m, rules, log, name());
}

}  // namespace kiln
