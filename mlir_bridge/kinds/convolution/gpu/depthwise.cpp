#include "mlir_bridge/kinds/convolution/gpu/depthwise.hpp"

#include <algorithm>

#include "ir/normalized_window.hpp"
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

std::vector<candidate> depthwise_space(kernel_emitter& e, const instruction& window, bool whole_pixels) {
  value image = window.inputs()[0], weights = window.inputs()[1];
  if (e.anchor_result().type().element_count() == 0) return {};
  const std::int64_t channels = kernel_emitter::dims(image).back(),
                     results = kernel_emitter::dims(e.anchor_result()).back();
  return window_space(e, image, geometry_of(*window.op().get_if<convolution>(), kernel_emitter::dims(weights)),
                      most_lanes(image, weights), results == channels ? results : results / channels, whole_pixels);
}

namespace {

window_stage stage_of(kernel_emitter& e, const instruction& window, bool whole_pixels) {
  value image = window.inputs()[0], weights = window.inputs()[1];
  // Windows overlap, so compute prologues once.
  materialize_channels(e, image);
  if (!e.in_memory(weights)) e.materialize(weights);
  const std::int64_t channels = kernel_emitter::sizes(image).back().value(),
                     results_each = window.outputs()[0].dims.back().value(), multiplier = results_each / channels,
                     lanes = window_lanes(e, most_lanes(image, weights), multiplier == 1 ? results_each : multiplier,
                                          whole_pixels);
  return {e,
          image,
          e.anchor_result(),
          geometry_of(*window.op().get_if<convolution>(), kernel_emitter::dims(weights)),
          lanes,
          whole_pixels};
}

// Returns the results of the stage's pixels.
values sums_of(kernel_emitter& e, const instruction& window, const window_stage& stage) {
  auto& code = e.code;
  value image = window.inputs()[0], weights = window.inputs()[1];
  const auto filter = kernel_emitter::dims(weights);
  const std::int64_t channels = kernel_emitter::sizes(image).back().value(),
                     multiplier = window.outputs()[0].dims.back().value() / channels, lanes = stage.lanes();
  element_type type = is_float(image.type().type) ? compute_type(image.type().type) : element_type::i32;
  bool floating = is_float(type);
  mlir::Type vector = code.type(type, lanes);
  Value zero = code.number(vector, 0);
  return stage.walk(values(stage.pixels(), zero), [&](evaluator& ev, const window_stage::tap& t, values state) {
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
}

}  // namespace

bool emit_depthwise(kernel_emitter& e) {
  if (!is_depthwise(e)) return false;
  if (e.anchor_result().type().elements() == 0) return true;
  window_stage stage = stage_of(e, *e.anchor(), /*whole_pixels=*/false);
  stage.emit("depthwise", [&] { return sums_of(e, *e.anchor(), stage); });
  return true;
}

bool emit_normalized_depthwise(kernel_emitter& e) {
  const instruction* window = find_normalized_window(*e.anchor());
  if (!window) return false;
  auto& code = e.code;
  const auto& op = *e.anchor()->op().get_if<normalize>();
  const value normal = e.anchor()->inputs()[0];
  window_stage stage = stage_of(e, *window, /*whole_pixels=*/true);
  stage.open("depthwise_normalize");
  values pixels = sums_of(e, *window, stage);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    evaluator ev(e);
    ev.bind({const_cast<instruction*>(window), 0}, pixels[i]);
    pixels[i] = ev.at(normal, stage.place(i), stage.lanes());
  }
  // The mean, the variance of the differences to it, and the scaled differences.
  const double share = 1.0 / static_cast<double>(kernel_emitter::sizes(normal).back().value());
  auto times = [&](Value a, Value b) { return code.make<mlir::arith::MulFOp>(a, b).getResult(); };
  if (op.centered) {
    const values totals = stage.total(pixels);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      Value mean = times(totals[i], code.number(totals[i].getType(), share));
      pixels[i] = code.make<mlir::arith::SubFOp>(pixels[i], code.splat(mean, stage.lanes()));
    }
  }
  values squares;
  for (Value x : pixels) squares.push_back(times(x, x));
  squares = stage.total(std::move(squares));
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const mlir::Type type = squares[i].getType();
    Value variance =
        code.make<mlir::arith::AddFOp>(times(squares[i], code.number(type, share)), code.number(type, op.epsilon));
    Value scale =
        code.make<mlir::arith::DivFOp>(code.number(type, 1), code.make<mlir::math::SqrtOp>(variance).getResult());
    pixels[i] = times(pixels[i], code.splat(scale, stage.lanes()));
  }
  stage.store(pixels);
  stage.close();
  return true;
}

}  // namespace kiln::gpu
