// Pooling of channels_last images: an output pixel's window is clipped to the image once, then combined for vectors of
// channels.
#include <limits>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/reduction_space.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/kinds/pooling/generators.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

Value lowest(code_builder& b, element_type type, std::int64_t lanes) {
  mlir::Type t = b.type(type, lanes);
  if (is_float(type)) return b.number(t, -std::numeric_limits<double>::infinity());
  if (!is_signed_integer(type)) return b.integer(t, 0);
  int bits = storage_bits(type);
  return b.integer(t, bits == 64 ? INT64_MIN : -(std::int64_t{1} << (bits - 1)));
}

// The window of an output pixel, clipped to the image. Per spatial axis: the input position of the first element of the
// whole window, and which of its elements [first, last) lie inside the image.
struct clipped_window {
  std::vector<Value> starts, firsts, lasts;
  Value counted;  // number of elements by which an average divides
};

clipped_window clip(kernel_emitter& e, const pooling& op, const std::vector<dim>& image, std::span<const Value> at) {
  auto& code = e.code;
  clipped_window w;
  w.counted = code.constant(1);
  for (std::size_t i = 0; i < op.window.size(); ++i) {
    std::int64_t dilation = op.dilations[i];
    const dim& extent = image[i + 1];
    Value start = code.sub(code.mul(at[i + 1], op.strides[i]), op.pads_begin[i]);
    // Number of window positions below `limit`.
    auto elements_below = [&](const dim& limit) {
      Value distance = code.max(code.sub(e.size(limit + dilation - 1), start), 0);
      return code.min(code.div(distance, dilation), op.window[i]);
    };
    Value before = code.max(code.sub(code.constant(dilation - 1), start), 0);
    Value first = code.min(code.div(before, dilation), op.window[i]);
    w.starts.push_back(start);
    w.firsts.push_back(op.pads_begin[i] == 0 ? code.constant(0) : first);
    w.lasts.push_back(elements_below(extent));
    Value inside = code.max(code.sub(w.lasts.back(), w.firsts.back()), 0);
    w.counted = code.mul(w.counted, op.count_padding ? elements_below(extent + op.pads_end[i]) : inside);
  }
  return w;
}

void require_supported(const pooling& op, element_type type) {
  if (op.layout != tensor_layout::channels_last)
    throw error(error_kind::unsupported,
                "pooling in a kernel must be channels_last; the layout pass turns channels_first images around");
  if (op.kind == pooling_kind::average && !is_float(type))
    throw error(error_kind::unsupported, "average pooling of " + std::string(name(type)) +
                                             " images has no CPU code; convert the image to f32 first");
  if (type == element_type::boolean)
    throw error(error_kind::unsupported, "pooling of bool images has no CPU code; convert the image to u8 first");
}

}  // namespace

void emit_pooling(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<pooling>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = input.type().type;
  require_supported(op, type);
  const bool average = op.kind == pooling_kind::average;
  const auto &in = kernel_emitter::sizes(input), &out = kernel_emitter::sizes(e.anchor_result());
  std::size_t spatial = op.window.size();
  std::int64_t channels = in.back().value(), window = 1;
  for (std::int64_t w : op.window) window *= w;
  // Windows overlap, so compute a prologue once.
  materialize_channels(e, input);
  std::int64_t lanes = e.lanes_for(type, channels);
  std::int64_t vectors = vectors_abreast(channels, lanes), block = lanes * vectors;
  std::vector<dim> pixels(out.begin(), out.end() - 1);

  e.parallel_open("pooling", pixels, window * channels, [&](std::span<const Value> at) {
    const clipped_window clipped = clip(e, op, in, at);
    Value share;
    if (average) {
      Value number = code.make<arith::SIToFPOp>(code.scalar_type(type), clipped.counted);
      share = code.make<arith::DivFOp>(code.number(code.scalar_type(type), 1), number);
    }
    auto channel_block = [&](Value channel) {
      values start(static_cast<std::size_t>(vectors),
                   average ? code.number(code.type(type, lanes), 0) : lowest(code, type, lanes));
      position where(in.size());
      where[0] = {at[0], 0, {}, 0, known_bound(in[0]), 1};
      std::function<values(std::size_t, values)> fold = [&](std::size_t i, values state) -> values {
        if (i < spatial) {
          return code.loop(
              clipped.firsts[i], clipped.lasts[i], 1, std::move(state), [&](Value k, std::span<const Value> carried) {
                where[i + 1] = {
                    code.add(clipped.starts[i], code.mul(k, op.dilations[i])), 0, {}, 0, known_bound(in[i + 1]), 1};
                return fold(i + 1, values(carried.begin(), carried.end()));
              });
        }
        evaluator ev(e);
        for (std::int64_t v = 0; v < vectors; ++v) {
          where.back() = {code.add(channel, v * lanes), lanes > 1 ? 1 : 0, {}, 0, channels, 1};
          Value x = ev.at(input, where, lanes);
          Value& s = state[static_cast<std::size_t>(v)];
          s = average ? code.make<arith::AddFOp>(s, x).getResult() : larger(code, type, s, x);
        }
        return state;
      };
      values folded = fold(0, start);
      for (std::int64_t v = 0; v < vectors; ++v) {
        Value result = folded[static_cast<std::size_t>(v)];
        if (average) result = code.make<arith::MulFOp>(result, code.splat(share, lanes));
        values indices(at.begin(), at.end());
        indices.push_back(code.add(channel, v * lanes));
        evaluator ev(e);
        ev.bind(e.anchor_result(), result);
        ev.store_outputs(indices, lanes);
      }
    };
    code.loop(0, channels, block,
              [&](Value channel) { channel_block(channels % block ? code.min(channel, channels - block) : channel); });
  });
}

bool opens_pooling(const instruction& anchor) {
  const auto& op = *anchor.op().get_if<pooling>();
  const shape& image = anchor.inputs()[0].type();
  const bool averages_integers = op.kind == pooling_kind::average && !is_float(image.type);
  return op.layout == tensor_layout::channels_last && image.dims.back().is_static() && !averages_integers &&
         image.type != element_type::boolean;
}

}  // namespace kiln::cpu
