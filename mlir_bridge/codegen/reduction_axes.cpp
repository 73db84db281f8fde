#include "mlir_bridge/codegen/reduction_axes.hpp"

#include <algorithm>
#include <optional>

#include "mlir_bridge/codegen/access.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"

namespace kiln::codegen {

reduction_axes::reduction_axes(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes) {
  const std::vector<dim>& sizes = kernel_emitter::sizes(input);
  rank = sizes.size();
  auto combined = [&](std::size_t axis) {
    return std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end();
  };
  access_analysis analysis(e, sizes);
  analysis.add_root(input);
  // An anchor result with the input's dims is stored, with its epilogue, at the positions of these loops.
  if (kernel_emitter::sizes(e.anchor_result()) == sizes)
    for (value output : e.outputs()) analysis.add_root(output);
  for (const auto& run : analysis.runs()) {
    // A run of the input may contain kept and combined axes. Split it.
    for (std::size_t i = 0; i < run.size(); ++i) {
      if (!combined(run[i])) continue;
      const bool joins = i > 0 && combined(run[i - 1]);
      if (joins) runs.back().push_back(run[i]), run_sizes.back() = run_sizes.back() * sizes[run[i]];
      else runs.push_back({run[i]}), run_sizes.push_back(sizes[run[i]]);
    }
  }
  for (const dim& size : run_sizes) count = count * size;
  std::optional<std::size_t> last;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    if (sizes[axis] != 1) last = axis;
  inner = !last || combined(*last);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    if (sizes[axis] != 1 && !combined(axis) && (inner || axis != *last))
      kept.push_back(axis), kept_sizes.push_back(sizes[axis]);
  if (inner) {
    lane_size = run_sizes.empty() ? dim(1) : run_sizes.back();
  } else {
    lane_axis = *last;
    lane_size = sizes[lane_axis];
    if (lane_axis + 1 == rank) cuts = analysis.cuts();
  }
}

position reduction_axes::start(code_builder& code, std::span<const Value> at) const {
  position where(rank, axis_index{code.constant(0), 0, {}, 0, 1, any_multiple});
  for (std::size_t i = 0; i < kept.size(); ++i) where[kept[i]] = {at[i], 0, {}, 0, known_bound(kept_sizes[i]), 1};
  return where;
}

}  // namespace kiln::codegen
