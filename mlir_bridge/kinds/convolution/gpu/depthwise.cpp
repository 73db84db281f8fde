#include "mlir_bridge/kinds/convolution/gpu/depthwise.hpp"

#include <algorithm>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/gpu/window.hpp"

namespace kiln::gpu {

namespace {

// Lanes of a vector must read neighbouring channels, or all the same channel.
std::int64_t most_lanes(value image, value weights) {
  return std::min({std::int64_t{8}, access_lanes(image.type().type), 2 * access_lanes(weights.type().type)});
}

window_stage::geometry geometry_of(const convolution& op, const std::vector<std::int64_t>& filter) {
  return {{filter.begin(), filter.end() - 2}, op.strides, op.dilations, op.pads_begin};
}

}  // namespace

bool is_depthwise(const kernel_emitter& e) {
  const auto* op = e.anchor()->op().get_if<convolution>();
  return op && op->layout == tensor_layout::channels_last && op->groups != 1 &&
         kernel_emitter::sizes(e.anchor()->inputs()[0]).back() == op->groups;
}

std::vector<candidate> depthwise_space(kernel_emitter& e) {
  value image = e.anchor()->inputs()[0], weights = e.anchor()->inputs()[1];
  if (e.anchor_result().type().element_count() == 0) return {};
  const std::int64_t channels = kernel_emitter::dims(image).back(),
                     results = kernel_emitter::dims(e.anchor_result()).back();
  return window_space(e, image, geometry_of(*e.anchor()->op().get_if<convolution>(), kernel_emitter::dims(weights)),
                      most_lanes(image, weights), results == channels ? results : results / channels);
}

bool emit_depthwise(kernel_emitter& e) {
  if (!is_depthwise(e)) return false;
  const auto* op = e.anchor()->op().get_if<convolution>();
  auto& code = e.code;
  value image = e.anchor()->inputs()[0], weights = e.anchor()->inputs()[1];
  const auto filter = kernel_emitter::dims(weights);
  const std::int64_t channels = kernel_emitter::sizes(image).back().value(),
                     results_each = kernel_emitter::sizes(e.anchor_result()).back().value();
  if (e.anchor_result().type().elements() == 0) return true;
  // Windows overlap, so compute prologues once.
  materialize_channels(e, image);
  if (!e.in_memory(weights)) e.materialize(weights);
  std::int64_t multiplier = results_each / channels;
  std::int64_t lanes = window_lanes(e, most_lanes(image, weights), multiplier == 1 ? results_each : multiplier);
  element_type type = is_float(image.type().type) ? compute_type(image.type().type) : element_type::i32;
  bool floating = is_float(type);
  window_stage stage(e, image, e.anchor_result(), geometry_of(*op, filter), lanes);
  stage.open("depthwise");
  mlir::Type vector = code.type(type, lanes);
  Value zero = code.number(vector, 0);
  values results =
      stage.walk(values(stage.pixels(), zero), [&](evaluator& ev, const window_stage::tap& t, values state) {
        position of_image = t.where, of_weights;
        if (multiplier > 1) of_image.back() = {code.div(stage.channel(), multiplier), 0, {}, 0, channels, 1};
        for (std::size_t axis = 0; axis < t.window.size(); ++axis)
          of_weights.push_back({t.window[axis], 0, {}, 0, filter[axis], 1});
        of_weights.push_back({code.constant(0), 0, {}, 0, 1, any_multiple});
        of_weights.push_back(t.where.back());
        Value x = convert_element(code, ev.at(image, of_image, lanes), image.type().type, type);
        Value w = convert_element(code, ev.at(weights, of_weights, lanes), weights.type().type, type);
        if (t.inside) x = code.select(t.inside, x, zero);
        Value& sum = state[t.pixel];
        sum = floating ? code.fma(x, w, sum) : code.add(code.mul(x, w), sum);
        return state;
      });
  stage.store(results);
  stage.close();
  return true;
}

}  // namespace kiln::gpu
