#include "aot/onnx/ops/merged_branches.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/sequences.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

constexpr std::array<std::string_view, 4> sized_by_data{"NonZero", "Compress", "Unique", "NonMaxSuppression"};

bool makes_bounded_dims(const ::onnx::GraphProto& branch) {
  return std::ranges::any_of(branch.node(), [](const ::onnx::NodeProto& each) {
    return std::ranges::find(sized_by_data, each.op_type()) != sized_by_data.end() ||
           std::ranges::any_of(each.attribute(), [](const auto& a) { return a.has_g() && makes_bounded_dims(a.g()); });
  });
}

// Selects elementwise between two tensors whose sizes may differ.
class selection {
 public:
  selection(node& n, value condition) : n_(n), b_(n.b), condition_(condition) {}

  value of(value yes, value no) {
    const std::vector<dim> left = yes.type().dims, right = no.type().dims;
    std::vector<std::pair<std::int64_t, value>> counts;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i] == right[i]) continue;
      const auto axis = static_cast<std::int64_t>(i);
      const import_state& state = n_.owner.state();
      const dim room = b_.facts().max(capacity_of(state, left[i]), capacity_of(state, right[i]));
      yes = with_room(n_, yes, axis, room);
      no = with_room(n_, no, axis, room);
      counts.emplace_back(axis, count_of(left[i], right[i]));
    }
    value result = b_.where(condition_, yes, no);
    for (const auto& [axis, count] : counts) result = shortened(n_, result, axis, count);
    return result;
  }

 private:
  // Returns the selected size. Axes with the same pair of sizes share one count.
  value count_of(const dim& left, const dim& right) {
    auto [found, fresh] = counts_.try_emplace({left.str(), right.str()});
    if (fresh) found->second = b_.where(condition_, b_.dims_tensor({left}), b_.dims_tensor({right}));
    return found->second;
  }

  node& n_;
  builder& b_;
  value condition_;
  std::map<std::pair<std::string, std::string>, value> counts_;
};

// skl2onnx's KNNImputer gives a matrix in one branch and the same matrix with an axis of 1 in the other one. Returns v
// without those axes of 1 that `wanted` does not have; v itself if its other axes are not as many as those of `wanted`.
value without_extra_axes(builder& b, value v, const shape& wanted) {
  std::vector<dim> kept;
  std::size_t extra = v.type().rank() - std::min(v.type().rank(), wanted.rank());
  for (const dim& size : v.type().dims) {
    const bool fits = kept.size() < wanted.rank() && size == wanted.dims[kept.size()];
    if (extra > 0 && size == dim(1) && !fits) --extra;
    else kept.push_back(size);
  }
  return kept.size() == wanted.rank() ? b.with_dims(v, kept) : v;
}

}  // namespace

bool needs_bounded_dims(node& n, const ::onnx::GraphProto& branch) {
  if (&n.b.target() == &n.owner.state().result.main() && makes_bounded_dims(branch)) return true;
  return std::ranges::any_of(outer_names(branch), [&](const std::string& name) {
    value outer = n.owner.find(name);
    return outer && has_bounded_dims(outer.type());
  });
}

std::vector<value> merged_branches(node& n, value condition, const std::vector<value>& yes,
                                   const std::vector<value>& no) {
  if (yes.size() != no.size()) invalid("its branches have different numbers of outputs");
  selection select(n, condition);
  std::vector<value> results;
  for (std::size_t i = 0; i < yes.size(); ++i) {
    for (value v : {yes[i], no[i]})
      if (find_compound(n.owner.state(), v))
        throw value_needed("a branch gives a sequence or an optional, so its condition must be known at import");
    value first = without_extra_axes(n.b, yes[i], no[i].type()), second = without_extra_axes(n.b, no[i], first.type());
    const shape &left = first.type(), &right = second.type();
    if (left.type != right.type || left.rank() != right.rank())
      throw value_needed("its branches give different shapes, " + left.str() + " and " + right.str());
    results.push_back(select.of(first, second));
  }
  return results;
}

}  // namespace kiln::onnx_import
