// Fourier transforms as products with matrices, and the filter bank that follows them. The matrix is a constant unless
// the length of the transform is open.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/tensors.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

constexpr std::int64_t most_weights = std::int64_t{1} << 25;  // of one matrix

// cos and sin of 2π n k / length, exact in the periods.
struct wave {
  std::int64_t length;
  double angle(std::int64_t n, std::int64_t k) const {
    return 2 * std::numbers::pi * static_cast<double>(n * k % length) / static_cast<double>(length);
  }
  double cos(std::int64_t n, std::int64_t k) const { return std::cos(angle(n, k)); }
  double sin(std::int64_t n, std::int64_t k) const { return std::sin(angle(n, k)); }
};

// The linear map of a transform, [inputs * parts, outputs * results] row-major: `parts` is 2 for complex inputs and 1
// for real ones, `results` likewise for outputs. Real and imaginary part are neighbours.
struct transform {
  std::int64_t inputs = 0, parts = 1, outputs = 0, results = 2;
  std::vector<double> matrix;
  double& at(std::int64_t n, std::int64_t part, std::int64_t k, std::int64_t result) {
    return matrix[static_cast<std::size_t>(((n * parts + part) * outputs + k) * results + result)];
  }
};

void reserve(transform& t) {
  if (t.inputs * t.parts > most_weights / (t.outputs * t.results))
    refuse("a transform of " + std::to_string(t.inputs) + " elements is too large for a matrix of weights");
  t.matrix.resize(static_cast<std::size_t>(t.inputs * t.parts * t.outputs * t.results));
}

// `length` samples to `outputs` frequencies; the inverse has the other sign and is divided by the length.
transform fourier(std::int64_t length, std::int64_t parts, std::int64_t outputs, bool inverse) {
  transform t{length, parts, outputs, 2, {}};
  reserve(t);
  const wave w{length};
  const double scale = inverse ? 1.0 / static_cast<double>(length) : 1, sign = inverse ? 1 : -1;
  for (std::int64_t n = 0; n < length; ++n)
    for (std::int64_t k = 0; k < outputs; ++k) {
      const double c = w.cos(n, k) * scale, s = sign * w.sin(n, k) * scale;
      t.at(n, 0, k, 0) = c, t.at(n, 0, k, 1) = s;
      if (parts == 2) t.at(n, 1, k, 0) = -s, t.at(n, 1, k, 1) = c;
    }
  return t;
}

// The frequencies 0 to length / 2 of a real signal to its `length` samples: the others are their conjugates.
transform inverse_of_half(std::int64_t length, std::int64_t parts) {
  transform t{length / 2 + 1, parts, length, 1, {}};
  reserve(t);
  const wave w{length};
  for (std::int64_t k = 0; k < t.inputs; ++k) {
    const double scale = (k == 0 || 2 * k == length ? 1.0 : 2.0) / static_cast<double>(length);
    for (std::int64_t n = 0; n < length; ++n) {
      t.at(k, 0, n, 0) = scale * w.cos(n, k);
      if (parts == 2) t.at(k, 1, n, 0) = -scale * w.sin(n, k);
    }
  }
  return t;
}

// The matrix of fourier() or inverse_of_half() for an open length, [inputs * parts, outputs * results].
value matrix_of_open_length(builder& b, const dim& length, std::int64_t parts, bool inverse, bool onesided,
                            element_type type) {
  const dim half = length / dim(2) + dim(1), inputs = inverse && onesided ? half : length,
            outputs = onesided && !inverse ? half : length;
  const std::vector<dim> dims{inputs, outputs};
  const value row = b.iota_like(element_type::i64, dims, 0), column = b.iota_like(element_type::i64, dims, 1);
  const value count = b.dims_tensor({length}, 0);
  const value period = b.to_type(b.binary(fn::mod, b.binary(fn::mul, row, column), count), type);
  const value turns = b.binary(fn::div, period, b.to_type(count, type));
  const value angle = b.binary(fn::mul, turns, 2 * std::numbers::pi);
  value cosine = b.unary(fn::cos, angle), sine = b.unary(fn::sin, angle);
  if (inverse) {
    value scale = b.binary(fn::div, b.scalar(type, 1), b.to_type(count, type));
    if (onesided) {  // frequencies between 0 and the last one stand for two
      const value first = b.binary(fn::equal, row, 0.0), last = b.binary(fn::equal, b.binary(fn::mul, row, 2.0), count);
      scale = b.binary(fn::mul, scale,
                       b.where(b.binary(fn::logical_or, first, last), b.scalar(type, 1), b.scalar(type, 2)));
    }
    cosine = b.binary(fn::mul, cosine, scale), sine = b.binary(fn::mul, sine, scale);
  }
  const value negative = b.unary(fn::neg, sine), imaginary = inverse ? sine : negative;
  // The element of the matrix for a part of the input and a part of the result.
  auto element = [&](value v) { return b.with_dims(v, {inputs, 1, outputs, 1}); };
  std::vector<value> rows;
  for (std::int64_t part = 0; part < parts; ++part) {
    const value real = part == 0 ? cosine : inverse ? negative : sine, other = part == 0 ? imaginary : cosine;
    rows.push_back(inverse && onesided ? element(real) : b.add(concat{3}, {element(real), element(other)}));
  }
  const value whole = rows.size() == 1 ? rows[0] : b.add(concat{1}, rows);
  return b.with_dims(whole, {inputs * dim(parts), outputs * dim(inverse && onesided ? 1 : 2)});
}

std::int64_t parts_of(const shape& signal) {
  if (signal.rank() < 2)
    invalid("a signal has an axis of time and one of 1 (real) or 2 (complex), not " + signal.str());
  const dim& last = signal.dims.back();
  if (!(last == dim(1)) && !(last == dim(2)))
    invalid("the last axis holds a real number or a complex one, not " + last.str() + " elements");
  return last.value();
}

std::int64_t length_of(node& n, std::size_t input, const char* what) {
  auto given = n.numbers(input, what);
  if (given.size() != 1 || given[0] < 1 || given[0] > most_weights) invalid(std::string(what) + " is out of range");
  return given[0];
}

// inputs: signal [batch..., time, 1 or 2], dft_length, axis (opset 20).
std::vector<value> dft(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  const std::int64_t parts = parts_of(x.type());
  const auto rank = x.type().rank();
  std::int64_t at = n.opset < 20 ? n.integer("axis", 1) : -2;
  if (n.opset >= 20 && n.has(2)) {
    auto given = n.numbers(2, "axis");
    if (given.size() != 1) invalid("axis must be a scalar");
    at = given[0];
  }
  const auto axis = static_cast<std::size_t>(normalize_axis(at, rank));
  if (axis + 1 == rank) invalid("axis is the one that holds the complex numbers");
  const bool inverse = n.integer("inverse", 0) != 0, onesided = n.integer("onesided", 0) != 0;
  const dim samples = x.type().dims.at(axis);
  const bool half = inverse && onesided;
  const dim length = n.has(1) ? dim(length_of(n, 1, "dft_length")) : half ? samples * dim(2) - dim(2) : samples;
  if (b.facts().at_least(0, length))
    invalid("needs at least one element along the transformed axis of " + x.type().str());
  const dim inputs = half ? length / dim(2) + dim(1) : length,
            outputs = onesided && !inverse ? length / dim(2) + dim(1) : length;
  const std::int64_t results = half ? 1 : 2;
  const element_type type = n.type(0).type, wide = compute_type(type);
  value weights;
  if (length.is_static()) {
    const transform t =
        half ? inverse_of_half(length.value(), parts) : fourier(length.value(), parts, outputs.value(), inverse);
    weights = b.constant(literal::from_doubles({wide, {t.inputs * parts, t.outputs * results}}, t.matrix));
  } else {
    weights = matrix_of_open_length(b, length, parts, inverse, onesided, wide);
  }
  x = b.to_type(x, wide);
  if (!(samples == inputs))
    x = b.pad_axis(x, static_cast<std::int64_t>(axis), 0, inputs - samples, pad_mode::constant_, 0);
  std::vector<std::int64_t> swap(rank);
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[axis], swap[rank - 2]);
  x = b.permuted(x, swap);
  std::vector<dim> flat(x.type().dims.begin(), x.type().dims.end() - 2), result = flat;
  flat.push_back(inputs * dim(parts));
  result.push_back(outputs), result.push_back(results);
  x = matmul(b, b.with_dims(x, flat), weights, wide);
  return {b.to_type(b.permuted(b.with_dims(x, result), swap), type)};
}

// inputs: signal [batch, time] or [batch, time, 1 or 2], frame_step, window [length], frame_length. The frames are the
// windows of a convolution, whose filters are the waves times the window.
std::vector<value> stft(node& n) {
  builder& b = n.b;
  value x = n.rank(0) == 2 ? b.with_dims(n.in(0), {n.dims(0)[0], n.dims(0)[1], 1}) : n.in(0);
  if (x.type().rank() != 3) invalid("needs a signal [batch, length, 1 or 2], not " + n.type(0).str());
  const std::int64_t parts = parts_of(x.type()), step = length_of(n, 1, "frame_step");
  std::int64_t length = 0;
  if (n.has(3)) length = length_of(n, 3, "frame_length");
  else if (n.has(2) && n.rank(2) == 1 && n.dims(2)[0].is_static()) length = n.dims(2)[0].value();
  if (length < 1) invalid("needs a window or a frame_length");
  if (n.has(2) && !(n.type(2).dims == std::vector<dim>{length}))
    invalid("the window " + n.type(2).str() + " does not fit frames of " + std::to_string(length));
  const bool onesided = n.integer("onesided", 1) != 0 && parts == 1;
  const transform t = fourier(length, parts, onesided ? length / 2 + 1 : length, false);
  std::vector<double> filters(t.matrix.size());  // [outputs * 2, parts, length]
  for (std::int64_t row = 0; row < length * parts; ++row)
    for (std::int64_t k = 0; k < t.outputs * 2; ++k)
      filters[static_cast<std::size_t>((k * parts + row % parts) * length + row / parts)] =
          t.matrix[static_cast<std::size_t>(row * t.outputs * 2 + k)];

  const element_type type = n.type(0).type, wide = compute_type(type);
  value weights = b.constant(literal::from_doubles({wide, {t.outputs * 2, parts, length}}, filters));
  if (n.has(2)) weights = b.binary(fn::mul, weights, b.to_type(n.in(2), wide));
  value frames = b.add(convolution{.strides = {step}, .dilations = {1}, .pads_begin = {0}, .pads_end = {0}},
                       {b.permuted(b.to_type(x, wide), {0, 2, 1}), weights});
  const auto dims = frames.type().dims;  // [batch, outputs * 2, frames]
  return {b.to_type(b.with_dims(b.permuted(frames, {0, 2, 1}), {dims.at(0), dims.at(2), t.outputs, 2}), type)};
}

// A bank of triangular filters that are as wide as each other on the mel scale, [dft_length / 2 + 1, bins].
std::vector<value> mel_weight_matrix(node& n) {
  const std::int64_t bins = length_of(n, 0, "num_mel_bins"), length = length_of(n, 1, "dft_length"),
                     rate = length_of(n, 2, "sample_rate"), rows = length / 2 + 1;
  if (rows > most_weights / bins)
    refuse("a matrix of " + std::to_string(rows) + " × " + std::to_string(bins) + " weights is too large");
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(n.number(3, "lower_edge_hertz")), high = mel(n.number(4, "upper_edge_hertz"));
  std::vector<std::int64_t> edges;
  for (std::int64_t i = 0; i < bins + 2; ++i) {
    const double hertz =
        700 * (std::pow(10, (low + static_cast<double>(i) * (high - low) / static_cast<double>(bins + 2)) / 2595) - 1);
    edges.push_back(
        static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate))));
  }
  if (edges.front() < 0 || edges.back() > rows || !std::ranges::is_sorted(edges))
    invalid("the edges of the bins are outside the spectrum");
  std::vector<double> weights(static_cast<std::size_t>(rows * bins));
  auto at = [&](std::int64_t row, std::int64_t bin) -> double& {
    if (row >= rows) invalid("the edges of the bins are outside the spectrum");
    return weights[static_cast<std::size_t>(row * bins + bin)];
  };
  for (std::int64_t i = 0; i < bins; ++i) {
    const auto left = edges[static_cast<std::size_t>(i)], center = edges[static_cast<std::size_t>(i) + 1],
               right = edges[static_cast<std::size_t>(i) + 2];
    if (left == center) at(center, i) = 1;
    for (std::int64_t j = left; left < center && j <= center; ++j)
      at(j, i) = static_cast<double>(j - left) / static_cast<double>(center - left);
    for (std::int64_t j = center; j < right; ++j)
      at(j, i) = static_cast<double>(right - j) / static_cast<double>(right - center);
  }
  const element_type type = element_type_of(n.integer("output_datatype", 1), "attribute 'output_datatype'");
  return {n.b.constant(literal::from_doubles({type, {rows, bins}}, weights))};
}

constexpr operator_row rows[] = {
    {"DFT", dft, 17, "dft_length and axis known at import"},
    {"STFT", stft, 17, "frame_step and frame_length known at import"},
    {"MelWeightMatrix", mel_weight_matrix, 17, "inputs known at import"},
};

}  // namespace

std::span<const operator_row> signal_operators() { return rows; }

}  // namespace kiln::onnx_import
