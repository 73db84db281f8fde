// pooling over channels_last images.
#include <algorithm>
#include <limits>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/codegen/reduction_rule.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/gpu/window.hpp"
#include "mlir_bridge/kinds/pooling/generators.hpp"

namespace kiln::gpu {

namespace arith = mlir::arith;

namespace {

std::int64_t most_lanes(element_type type) { return std::min<std::int64_t>(8, access_lanes(type)); }

}  // namespace

std::vector<candidate> pooling_space(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<pooling>();
  value input = e.anchor()->inputs()[0];
  if (e.anchor_result().type().element_count() == 0) return {};
  return window_space(e, input, {op.window, op.strides, op.dilations, op.pads_begin}, most_lanes(input.type().type),
                      kernel_emitter::dims(input).back());
}

void emit_pooling(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<pooling>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = input.type().type;
  bool average = op.kind == pooling_kind::average;
  if (op.layout != tensor_layout::channels_last)
    throw error(error_kind::unsupported,
                "pooling in a kernel must be channels_last; the layout pass turns channels_first images around");
  if (average && !is_float(type))
    throw error(error_kind::unsupported, "average pooling of " + std::string(name(type)) +
                                             " images has no GPU code; convert the image to f32 first");
  if (type == element_type::boolean)
    throw error(error_kind::unsupported, "pooling of bool images has no GPU code; convert the image to u8 first");
  if (e.anchor_result().type().elements() == 0) return;
  // Windows overlap, so compute a prologue once.
  materialize_channels(e, input);
  std::int64_t lanes = window_lanes(e, most_lanes(type), kernel_emitter::sizes(input).back().value());
  window_stage stage(e, input, e.anchor_result(), {op.window, op.strides, op.dilations, op.pads_begin}, lanes);
  reduction_rule rule(average ? reduction_kind::sum : reduction_kind::max, type);
  stage.emit("pooling", [&] {
    Value neutral = rule.start(code, lanes);
    values results =
        stage.walk(values(stage.pixels(), neutral), [&](evaluator& ev, const window_stage::tap& t, values state) {
          Value x = ev.at(input, t.where, lanes);
          if (t.inside) x = code.select(t.inside, x, neutral);
          state[t.pixel] = rule.combine(code, state[t.pixel], x);
          return state;
        });
    if (average)
      for (std::size_t pixel = 0; pixel < results.size(); ++pixel) {
        mlir::Type scalar = code.scalar_type(type);
        Value number =
            code.make<arith::SIToFPOp>(scalar, stage.count(pixel, op.count_padding ? &op.pads_end : nullptr));
        Value share = code.make<arith::DivFOp>(code.number(scalar, 1), number);
        results[pixel] = code.make<arith::MulFOp>(results[pixel], code.splat(share, lanes));
      }
    return results;
  });
}

bool opens_pooling(const instruction& anchor) { return anchor.inputs()[0].type().dims.back().is_static(); }

}  // namespace kiln::gpu
