// Convolution and transposed convolution of channels_last images as implicit matrix products. Rows m are output pixels;
// k is a window position and, innermost, an input channel of the group; columns n are output channels of the group.
#include <functional>
#include <numeric>

#include "ir/error.hpp"
#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/access.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/open_product.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma.hpp"
#include "mlir_bridge/kinds/convolution/generators.hpp"
#include "mlir_bridge/kinds/convolution/gpu/depthwise.hpp"

namespace kiln::gpu {

namespace {

std::int64_t product(std::span<const std::int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

dim product(std::span<const dim> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), dim(1), std::multiplies<>());
}

// One spatial axis. A convolution's output o reads input o * stride - pad + w * dilation at window position w. A
// transposed convolution's output o reads input i if i * stride = o + pad - w * dilation.
struct spatial_axis {
  dim in, out;
  std::int64_t window, stride, dilation, pad;
  bool transposed;

  bool may_leave() const {
    if (transposed || pad > 0) return true;
    const dim beyond_last = in - ((out - 1) * stride - pad + (window - 1) * dilation);
    return !beyond_last.is_static() || beyond_last.value() <= 0;
  }
  // Returns an input position that is always inside the image, and a condition that it is the true one (null: always).
  std::pair<Value, Value> locate(kernel_emitter& e, Value output, Value tap) const {
    code_builder& code = e.code;
    if (!transposed) {
      Value i = code.add(code.sub(code.mul(output, stride), pad), code.mul(tap, dilation));
      if (!may_leave()) return {i, {}};
      return {e.min(code.max(i, 0), in - 1), below(e, i, in)};
    }
    Value scaled = code.sub(code.add(output, pad), code.mul(tap, dilation)), positive = code.max(scaled, 0),
          i = code.div(positive, stride);
    Value inside = both(code, below(e, scaled, in * stride),
                        stride == 1 ? Value() : code.equal(code.rem(positive, stride), code.constant(0)));
    return {e.min(i, in - 1), inside};
  }

 private:
  // Tests 0 <= i < n with one comparison.
  static Value below(kernel_emitter& e, Value i, const dim& n) {
    return e.code.make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, i, e.size(n));
  }
};

struct image_problem {
  value image, weights;
  std::vector<spatial_axis> axes;
  dim batch;
  std::int64_t groups, channels, features;  // channels and features of a group
  std::vector<std::int64_t> window() const {
    std::vector<std::int64_t> dims;
    for (const spatial_axis& axis : axes) dims.push_back(axis.window);
    return dims;
  }
  std::vector<dim> pixels() const {
    std::vector<dim> dims{batch};
    for (const spatial_axis& axis : axes) dims.push_back(axis.out);
    return dims;
  }
};

bool channels_are_contiguous(kernel_emitter& e, value image) {
  access_analysis access(e, kernel_emitter::sizes(image));
  access.add_root(image);
  return !access.transposed_axis();
}

// k, split into a window position and a channel.
struct depth_place {
  values window;
  Value channel, inside;
};

operand image_operand(kernel_emitter& e, const image_problem& p, element_type factor) {
  operand result;
  const std::vector<dim> pixels = p.pixels();
  const std::vector<std::int64_t> window = p.window();
  const std::int64_t taps = product(window), depth = taps * p.channels;
  result.rows = product(pixels), result.depth = depth;
  result.type = p.image.type().type;
  result.along_rows = !channels_are_contiguous(e, p.image);
  result.piece = std::gcd(p.channels, elements_of_chunk(factor));
  auto place = [&e, window, taps, depth, channels = p.channels, piece = result.piece](const element_request& at) {
    code_builder& code = e.code;
    depth_place found;
    Value tap;
    const std::int64_t shift = at.offset % piece, begin = at.offset - shift;
    if (channels % at.k_step == 0) {
      // A step stays within one window position, which is uniform across threads.
      tap = code.div(at.k_tile, channels);
      found.channel = code.add(code.add(code.rem(at.k_tile, channels), at.k_inner), at.offset);
    } else {
      Value k = code.add(code.add(at.k_tile, at.k_inner), begin);
      if (at.beyond) {
        found.inside = code.less(k, code.constant(depth));
        k = code.min(k, depth - piece);
      }
      tap = taps == 1 ? code.constant(0) : code.div(k, channels);
      found.channel = code.add(taps == 1 ? k : code.rem(k, channels), shift);
    }
    found.window = code.delinearize(tap, window);
    return found;
  };
  result.find = [&e, p, pixels, place, rows = result.rows, piece = result.piece](evaluator& ev,
                                                                                 const element_request& at) {
    code_builder& code = e.code;
    depth_place depth = place(at);
    found_elements found{{}, depth.inside};
    values pixel = e.delinearize(e.min(at.row, rows - 1), pixels);
    position where{axis_at(pixel[0], 0, known_bound(p.batch), 1)};
    for (std::size_t i = 0; i < p.axes.size(); ++i) {
      auto [input, inside] = p.axes[i].locate(e, pixel[1 + i], depth.window[i]);
      found.inside = both(code, found.inside, inside);
      where.push_back(axis_at(input, 0, known_bound(p.axes[i].in), 1));
    }
    Value channel = p.groups == 1 ? depth.channel : code.add(code.mul(at.batch, p.channels), depth.channel);
    where.push_back(
        axis_at(channel, 0, p.channels * p.groups, std::gcd(piece, at.offset % piece), at.lanes > 1 ? 1 : 0));
    found.elements = ev.at(p.image, where, at.lanes);
    return found;
  };
  return result;
}

// Weights are [window..., channels of a group, all features]; those of transposed convolutions are [window..., features
// of a group, all channels].
operand weight_operand(kernel_emitter& e, const image_problem& p, bool transposed) {
  operand result;
  const std::vector<std::int64_t> window = p.window();
  const std::int64_t depth = product(window) * p.channels;
  result.rows = p.features, result.depth = depth;
  result.type = p.weights.type().type;
  result.along_rows = true;
  result.piece = 1;
  result.find = [&e, p, window, depth, transposed](evaluator& ev, const element_request& at) {
    code_builder& code = e.code;
    found_elements found;
    Value k = code.add(code.add(at.k_tile, at.k_inner), at.offset);
    if (at.beyond) {
      found.inside = code.less(k, code.constant(depth));
      k = code.min(k, depth - 1);
    }
    position where;
    values taps = code.delinearize(code.div(k, p.channels), window);
    for (std::size_t i = 0; i < taps.size(); ++i) where.push_back(axis_at(taps[i], 0, window[i], 1));
    Value channel = code.rem(k, p.channels), feature = code.min(at.row, p.features - 1);
    if (transposed) channel = code.add(code.mul(at.batch, p.channels), channel);
    else feature = code.add(code.mul(at.batch, p.features), feature);
    where.push_back(transposed ? axis_at(feature, 0, p.features, 1) : axis_at(channel, 0, p.channels, 1));
    where.push_back(transposed ? axis_at(channel, 0, p.channels * p.groups, 1)
                               : axis_at(feature, 0, p.features * p.groups, 1));
    found.elements = ev.at(p.weights, where, 1);
    return found;
  };
  return result;
}

template <class Op>
contraction_problem find_problem(kernel_emitter& e, bool transposed) {
  const Op& op = *e.anchor()->op().template get_if<Op>();
  if (op.layout != tensor_layout::channels_last)
    throw error(error_kind::unsupported,
                "kernel '" + e.symbol + "' holds a " + std::string(e.anchor()->op().name()) +
                    " in channels_first layout; kernels take channels_last (the layout pass makes it so)");
  image_problem p;
  p.image = e.anchor()->inputs()[0], p.weights = e.anchor()->inputs()[1];
  const std::vector<std::int64_t> filter = e.dims(p.weights);
  const std::vector<dim>&in = kernel_emitter::sizes(p.image), &out = kernel_emitter::sizes(e.anchor_result());
  for (std::size_t i = 0; i + 2 < in.size(); ++i)
    p.axes.push_back({in[1 + i], out[1 + i], filter[i], op.strides[i], op.dilations[i], op.pads_begin[i], transposed});
  p.batch = in[0];
  p.groups = op.groups;
  p.channels = in.back().value() / op.groups;
  p.features = out.back().value() / op.groups;

  contraction_problem c;
  c.batch = op.groups;
  c.m = product(p.pixels());
  c.n = p.features;
  c.k = product(p.window()) * p.channels;
  if (product(in) == 0) c.k = 0;
  c.last_axis = out.back();
  c.a = image_operand(e, p, types_of(p.image.type().type, p.weights.type().type).factor);
  c.b = weight_operand(e, p, transposed);
  c.pack_b = true;
  c.b_constant = e.only_parameters(p.weights);
  c.locate = [&e, pixels = p.pixels(), features = p.features, all = out.back().value()](
                 code_builder& code, Value group, Value row, Value column, std::int64_t lanes) {
    position where;
    values pixel = e.delinearize(row, pixels);
    for (std::size_t i = 0; i < pixel.size(); ++i) where.push_back(axis_at(pixel[i], 0, known_bound(pixels[i]), 1));
    where.push_back(axis_at(code.add(code.mul(group, features), column), 0, all, lanes, lanes > 1 ? 1 : 0));
    return where;
  };
  return c;
}

}  // namespace

void emit_convolution(kernel_emitter& e) {
  if (emit_depthwise(e)) return;
  if (!try_wgmma_convolution(e)) emit_contraction(e, find_problem<convolution>(e, false));
}
void emit_open_convolution(kernel_emitter& e) {
  if (!emit_depthwise(e)) emit_open_product(e, find_problem<convolution>(e, false), find_convolution_problem);
}
bool opens_image(const instruction& anchor) {
  return anchor.inputs()[1].type().is_static() && anchor.inputs()[0].type().dims.back().is_static();
}
void emit_transposed_convolution(kernel_emitter& e) {
  emit_open_product(e, find_problem<transposed_convolution>(e, true));
}

std::vector<candidate> convolution_space(kernel_emitter& e) {
  if (is_depthwise(e)) return depthwise_space(e, *e.anchor());
  std::vector<candidate> result = wgmma_space(e), others = contraction_space(e, find_problem<convolution>(e, false));
  result.insert(result.end(), others.begin(), others.end());
  return result;
}
std::vector<candidate> transposed_convolution_space(kernel_emitter& e) {
  return contraction_space(e, find_problem<transposed_convolution>(e, true));
}

}  // namespace kiln::gpu
