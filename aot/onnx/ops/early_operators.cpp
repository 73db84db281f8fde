// Operators of the first versions of ONNX that were experimental, and that converters for Core ML and Keras wrote until
// opset 9. onnxruntime still runs them.
#include <array>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/linear_recurrence.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::vector<double> reals(const node& n, std::string_view name) {
  const auto* list = n.attribute(name);
  return list ? std::vector<double>(list->floats().begin(), list->floats().end()) : std::vector<double>{};
}

// alpha * x + beta.
std::vector<value> affine(node& n) {
  builder& b = n.b;
  return {b.binary(fn::add, b.binary(fn::mul, n.in(0), n.real("alpha", 1)), n.real("beta", 0))};
}

std::vector<value> scale(node& n) { return {n.b.binary(fn::mul, n.in(0), n.real("scale", 1))}; }

// scale * x + the bias of each channel, for an image [N, C, H, W].
std::vector<value> image_scaler(node& n) {
  builder& b = n.b;
  if (n.rank(0) != 4) invalid("an image has rank 4, not " + n.type(0).str());
  const auto bias = reals(n, "bias");
  const auto channels = static_cast<std::int64_t>(bias.size());
  b.need_equal(n.dims(0)[1], channels, "channels of the image and of the bias");
  value added = b.constant(literal::from_doubles({n.type(0).type, {1, channels, 1, 1}}, bias));
  return {b.binary(fn::add, b.binary(fn::mul, n.in(0), n.real("scale", 1)), added)};
}

// alpha * log(exp(beta * x) + 1).
std::vector<value> parametric_softplus(node& n) {
  value soft = softplus(n.b, n.b.binary(fn::mul, n.in(0), n.real("beta", 0)));
  return {n.b.binary(fn::mul, soft, n.real("alpha", 0))};
}

// alpha * tanh(beta * x).
std::vector<value> scaled_tanh(node& n) {
  builder& b = n.b;
  return {b.binary(fn::mul, b.unary(fn::tanh, b.binary(fn::mul, n.in(0), n.real("beta", 0))), n.real("alpha", 0))};
}

// Cuts the borders (left, top, right, bottom) off an image [N, C, H, W], or takes `scale` (height, width) pixels from
// the left and upper border on.
std::vector<value> crop(node& n) {
  builder& b = n.b;
  const auto border = n.integers("border").value_or(std::vector<std::int64_t>{});
  const auto size = n.integers("scale").value_or(std::vector<std::int64_t>{});
  if (n.rank(0) != 4 || border.size() != 4 || (!size.empty() && size.size() != 2))
    invalid("the image " + n.type(0).str() + ", border and scale do not fit");
  const std::array<std::int64_t, 2> first{border[1], border[0]}, last{border[3], border[2]};
  value x = n.in(0);
  for (std::size_t i = 0; i < 2; ++i) {
    const dim whole = n.dims(0)[i + 2], length = size.empty() ? whole - dim(first[i] + last[i]) : dim(size[i]);
    if (first[i] < 0 || last[i] < 0 ||
        (length.is_static() && whole.is_static() && (length.value() < 1 || first[i] + length.value() > whole.value())))
      invalid("border and scale do not fit the image " + n.type(0).str());
    x = b.slice_axis(x, static_cast<std::int64_t>(i + 2), first[i], length);
  }
  return {x};
}

constexpr operator_row rows[] = {
    {"Affine", affine, 1, "experimental"},
    {"Scale", scale, 1, "experimental"},
    {"ImageScaler", image_scaler, 1, "experimental"},
    {"ParametricSoftplus", parametric_softplus, 1, "experimental"},
    {"ScaledTanh", scaled_tanh, 1, "experimental"},
    {"Crop", crop, 1, "experimental"},
};

}  // namespace

std::span<const operator_row> early_operators() { return rows; }

}  // namespace kiln::onnx_import
