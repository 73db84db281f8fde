// Normalizations and softmax.
#include <numeric>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/tensors.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::vector<std::int64_t> axes_from(std::size_t first, std::size_t rank) {
  std::vector<std::int64_t> axes(rank - std::min(first, rank));
  std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(first));
  return axes;
}

// Returns x * scale + bias, with one scale and bias per channel (axis 1).
value channel_affine(builder& b, value x, value scale, value bias) {
  std::size_t rank = x.type().rank();
  auto lifted = [&](value v) { return b.to_type(b.along_axis(v, 0, rank - 1), x.type().type); };
  return b.binary(fn::add, b.binary(fn::mul, x, lifted(scale)), lifted(bias));
}

// training_mode=1 normalizes with the mean and the variance of the batch and updates the running statistics with them.
std::vector<value> batch_statistics(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  if (x.type().rank() < 2) invalid("the input " + x.type().str() + " has no channel axis");
  std::vector<std::int64_t> axes = axes_from(2, x.type().rank());
  axes.insert(axes.begin(), 0);  // all but the channels
  std::vector<value> results{
      channel_affine(b, b.add(normalize{axes, n.real("epsilon", 1e-5), true}, {x}), n.in(1), n.in(2))};
  if (!n.wants(1) && !n.wants(2)) return results;
  double momentum = n.real("momentum", 0.9);
  value wide = b.to_type(x, compute_type(x.type().type)), mean = b.reduced(reduction_kind::mean, wide, axes, true);
  value centred = b.binary(fn::sub, wide, mean);
  value variance = b.reduced(reduction_kind::mean, b.binary(fn::mul, centred, centred), axes, true);
  auto moved = [&](std::size_t running, value now) {
    const shape& type = n.type(running);
    value before = b.binary(fn::mul, b.to_type(n.in(running), now.type().type), momentum);
    value after = b.binary(fn::mul, b.with_dims(now, {x.type().dims.at(1)}), 1 - momentum);
    return b.to_type(b.binary(fn::add, before, after), type.type);
  };
  results.push_back(moved(3, mean));
  results.push_back(moved(4, variance));
  return results;
}

// Inference form: x * s + t with s = scale / sqrt(variance + epsilon), t = bias - mean * s. The small vectors are
// computed in f32 at import. The remaining multiplication and addition are later fused into a convolution.
std::vector<value> batch_normalization(node& n) {
  if (n.integer("training_mode", 0)) return batch_statistics(n);
  if (n.opset < 7 && n.integer("is_test", 0) == 0) refuse("is_test=0 (training) is not supported before opset 14");
  if (n.opset < 9 && n.integer("spatial", 1) == 0) refuse("spatial=0 is not supported");
  n.refuse_outputs_from(1, "running statistics");
  builder& b = n.b;
  element_type wide = compute_type(n.type(0).type);
  if (n.rank(0) < 2) invalid("the input " + n.type(0).str() + " has no channel axis");
  auto channels = [&](std::size_t i) {
    if (n.rank(i) != 1 || !(n.dims(i)[0] == n.dims(0)[1]))
      invalid("input " + std::to_string(i) + " is " + n.type(i).str() + ", the image " + n.type(0).str());
    return b.to_type(n.in(i), wide);
  };
  value scale = channels(1), bias = channels(2), mean = channels(3), variance = channels(4);
  value factor = b.binary(fn::div, scale, b.unary(fn::sqrt, b.binary(fn::add, variance, n.real("epsilon", 1e-5))));
  value offset = b.binary(fn::sub, bias, b.binary(fn::mul, mean, factor));
  return {channel_affine(b, n.in(0), factor, offset)};
}

std::vector<value> instance_normalization(node& n) {
  value x = n.in(0);
  if (x.type().rank() < 3) invalid("the input " + x.type().str() + " has no spatial axes");
  value normal = n.b.add(normalize{axes_from(2, x.type().rank()), n.real("epsilon", 1e-5), true}, {x});
  return {channel_affine(n.b, normal, n.in(1), n.in(2))};
}

// Normalizes groups of channels as [N, groups, rest]. Scale and bias are per group before opset 21 and per channel
// since.
std::vector<value> group_normalization(node& n) {
  builder& b = n.b;
  value x = n.in(0), scale = n.in(1), bias = n.in(2);
  auto dims = x.type().dims;
  std::int64_t groups = n.integer("num_groups", 0);
  if (dims.size() < 3 || groups < 1 || !dims.at(1).is_static() || dims.at(1).value() % groups != 0)
    invalid("num_groups " + std::to_string(groups) + " does not divide the channels of " + x.type().str());
  std::int64_t per_group = dims.at(1).value() / groups;
  std::vector<dim> grouped{dims.at(0), groups, per_group};
  grouped.insert(grouped.end(), dims.begin() + 2, dims.end());
  value normal =
      b.add(normalize{axes_from(2, grouped.size()), n.real("epsilon", 1e-5), true}, {b.with_dims(x, grouped)});
  if (n.opset < 21) {
    auto repeated = [&](value v) {
      return b.with_dims(b.broadcast_to(b.with_dims(v, {groups, 1}), {groups, per_group}), {dims.at(1)});
    };
    scale = repeated(scale);
    bias = repeated(bias);
  }
  return {channel_affine(b, b.with_dims(normal, dims), scale, bias)};
}

std::vector<value> layer_normalization(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  std::size_t rank = x.type().rank();
  auto axes = axes_from(static_cast<std::size_t>(n.axis("axis", -1, rank)), rank);
  double epsilon = n.real("epsilon", 1e-5);
  value result = b.add(normalize{axes, epsilon, true}, {x});
  result = b.binary(fn::mul, result, n.in(1));
  if (n.has(2)) result = b.binary(fn::add, result, n.in(2));
  if (!n.wants(1) && !n.wants(2)) return {result};
  value wide = b.to_type(x, compute_type(x.type().type));
  value mean = b.reduced(reduction_kind::mean, wide, axes, true), centred = b.binary(fn::sub, wide, mean);
  value variance = b.reduced(reduction_kind::mean, b.binary(fn::mul, centred, centred), axes, true);
  // Mean and deviation have the type in which the standard's formula computes them.
  const element_type stash = element_type_of(n.integer("stash_type", ::onnx::TensorProto::FLOAT), "stash_type");
  value inverse = b.unary(fn::rsqrt, b.binary(fn::add, variance, epsilon));
  return {result, b.to_type(mean, stash), b.to_type(inverse, stash)};
}

// The standard's formula adds 1e-9 to the standard deviation. Adding 1e-18 to the variance is equivalent where it
// matters.
std::vector<value> mean_variance_normalization(node& n) {
  auto axes = n.integers("axes").value_or(std::vector<std::int64_t>{0, 2, 3});
  for (auto& a : axes) a = normalize_axis(a, n.rank(0));
  std::sort(axes.begin(), axes.end());
  return {n.b.add(normalize{axes, 1e-18, true}, {n.in(0)})};
}

// x / (bias + alpha * mean of x² over a window of channels)^beta. The mean is a pooling over the channel axis, for
// which the pixels, which lie together in memory, are the channels.
std::vector<value> local_response_normalization(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  auto dims = x.type().dims;
  std::int64_t size = n.integer("size", 0);
  if (size < 1 || size > 1 << 20 || dims.size() < 2)
    invalid("needs a positive size and an input with a channel axis, not " + std::to_string(size) + " and " +
            x.type().str());
  dim rest = 1;
  for (std::size_t i = 2; i < dims.size(); ++i) rest = rest * dims.at(i);
  pooling mean{pooling_kind::average,       {size}, {1}, {1}, {(size - 1) / 2}, {size / 2}, true, false,
               tensor_layout::channels_last};
  value squares = b.with_dims(b.binary(fn::mul, x, x), {dims.at(0), dims.at(1), rest});
  value sums = b.with_dims(b.add(mean, {squares}), dims);
  value base = b.binary(fn::add, b.binary(fn::mul, sums, n.real("alpha", 1e-4)), n.real("bias", 1.0));
  return {b.binary(fn::div, x, b.binary(fn::pow, base, n.real("beta", 0.75)))};
}

std::vector<value> lp_normalization(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  std::int64_t p = n.integer("p", 2);
  if (p != 1 && p != 2) invalid("p must be 1 or 2, not " + std::to_string(p));
  value sum = b.reduced(reduction_kind::sum, p == 1 ? b.unary(fn::abs, x) : b.binary(fn::mul, x, x),
                        {n.axis("axis", -1, x.type().rank())}, true);
  value norm = p == 1 ? sum : b.unary(fn::sqrt, sum);
  value divisor = b.where(b.binary(fn::equal, norm, 0.0), b.scalar(x.type().type, 1), norm);  // zero vectors stay zero
  return {b.binary(fn::div, x, divisor)};
}

// Before opset 13 the input is treated as a matrix: the axes from `axis` on are flattened into columns.
value as_matrix(node& n, std::int64_t axis) {
  dim rows = 1, columns = 1;
  for (std::size_t i = 0; i < n.rank(0); ++i)
    (static_cast<std::int64_t>(i) < axis ? rows : columns) =
        (static_cast<std::int64_t>(i) < axis ? rows : columns) * n.dims(0)[i];
  return n.b.with_dims(n.in(0), {rows, columns});
}

template <bool Logarithm>
std::vector<value> soft_max(node& n) {
  if (n.opset >= 13) return {n.b.add(softmax{n.axis("axis", -1, n.rank(0)), Logarithm}, {n.in(0)})};
  auto axis = n.axis("axis", 1, n.rank(0));
  return {n.b.with_dims(n.b.add(softmax{1, Logarithm}, {as_matrix(n, axis)}), n.dims(0))};
}

// Returns 1 at the first of the largest elements.
std::vector<value> hardmax(node& n) {
  builder& b = n.b;
  if (n.type(0).is_static() && n.type(0).element_count() == 0) return {n.in(0)};
  auto axis = n.axis("axis", n.opset < 13 ? 1 : -1, n.rank(0));
  value x = n.opset < 13 ? as_matrix(n, axis) : n.in(0);
  if (n.opset < 13) axis = 1;
  value best = b.broadcast_to(b.add(arg_reduce{true, axis, true, false}, {x}), x.type().dims);
  value hit = b.binary(fn::equal, b.iota_like(element_type::i64, x.type().dims, axis), best);
  return {b.with_dims(b.to_type(hit, x.type().type), n.dims(0))};
}

constexpr operator_row rows[] = {
    {"BatchNormalization", batch_normalization, 6, "training_mode=1 from opset 14"},
    {"InstanceNormalization", instance_normalization, 6},
    {"GroupNormalization", group_normalization, 18},
    {"LayerNormalization", layer_normalization, 1},
    {"MeanVarianceNormalization", mean_variance_normalization, 9},
    {"LRN", local_response_normalization},
    {"LpNormalization", lp_normalization},
    {"Softmax", soft_max<false>},
    {"LogSoftmax", soft_max<true>},
    {"Hardmax", hardmax},
};

}  // namespace

std::span<const operator_row> normalization_operators() { return rows; }

}  // namespace kiln::onnx_import
