#include "aot/onnx/window_guards.hpp"

#include <string>
#include <tuple>

#include "aot/onnx/bounded_values.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {

void need_windows_to_fit(builder& b, const operation& op, const std::vector<shape>& shapes) {
  const auto* c = op.get_if<convolution>();
  const auto* p = op.get_if<pooling>();
  if (!c && !p) return;
  const std::size_t rank = c ? c->strides.size() : p->strides.size();
  const auto first = [](tensor_layout layout) {
    return std::size_t{layout == tensor_layout::channels_first ? 2u : 1u};
  };
  for (std::size_t i = 0; i < rank; ++i) {
    const dim& in = shapes[0].dims[first(c ? c->layout : p->layout) + i];
    const dim window = c ? shapes[1].dims[c->layout == tensor_layout::channels_first ? 2 + i : i] : dim(p->window[i]);
    if (in.is_static() || is_bounded(in) || !window.is_static()) continue;
    const auto& [begin, end, dilation] = c ? std::tuple(c->pads_begin[i], c->pads_end[i], c->dilations[i])
                                           : std::tuple(p->pads_begin[i], p->pads_end[i], p->dilations[i]);
    // Rounding up, a window that is larger than the axis counts once if the stride reaches its end.
    const std::int64_t extent = dilation * (window.value() - 1) + 1,
                       beside = begin + end + (p && p->ceil_mode ? p->strides[i] - 1 : 0);
    const dim least = extent - beside;
    if (!b.facts().at_least(in, least))
      b.need_equal(dim::min(in, least), least,
                   "a window of " + std::to_string(extent) + " does not fit into " + in.str() + " with its padding");
  }
}

}  // namespace kiln::onnx_import
