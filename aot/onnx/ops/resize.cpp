// Resize and Upsample.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/resize_open.hpp"
#include "aot/onnx/ops/resize_weights.hpp"
#include "aot/onnx/ops/text_choice.hpp"

namespace kiln::onnx_import {
namespace {

// Returns scale as an exact fraction first / second, if possible. Then floor(in * scale) is a quotient of dims.
std::optional<std::pair<std::int64_t, std::int64_t>> exact_fraction(double scale) {
  for (std::int64_t divisor = 1; divisor <= 1 << 30; divisor *= 2)
    if (double product = scale * static_cast<double>(divisor); product == std::floor(product))
      return std::pair(static_cast<std::int64_t>(product), divisor);
  return std::nullopt;
}

void set_scale(resize& op, std::size_t axis, const dim& in, double scale) {
  constexpr double limit = 1 << 20;
  if (!(scale > 0) || scale > limit) invalid("scale " + std::to_string(scale) + " is out of range");
  op.scales[axis] = scale;
  if (in.is_static() && in.value() > largest_dim) invalid("a dimension of " + in.str() + " is out of range");
  if (in.is_static()) op.dims.at(axis) = static_cast<std::int64_t>(std::floor(static_cast<double>(in.value()) * scale));
  else if (1 / scale == std::floor(1 / scale)) op.dims.at(axis) = in / dim(static_cast<std::int64_t>(1 / scale));
  else if (auto fraction = exact_fraction(scale)) op.dims.at(axis) = in * dim(fraction->first) / dim(fraction->second);
  else refuse("scales dimension '" + in.str() + "' by " + std::to_string(scale) + "; give it a value with --dim");
}

// Scales that the model computes from sizes, such as 224 / Min(height, width). Returns, for each axis of `axes`, the
// scale as an f32 scalar, or an empty value where it is a number.
std::vector<value> set_computed_scales(node& n, resize& op, std::size_t input, const std::vector<std::size_t>& axes) {
  builder& b = n.b;
  const auto scales = b.fractions_of_value(n.in(input));
  if (!scales || n.type(input).type != element_type::f32) n.constant(input, "scales");  // refuses
  if (scales->size() != axes.size())
    invalid("scales has " + n.type(input).str() + " for " + std::to_string(axes.size()) + " axes");
  const auto dims = n.dims(0);
  std::vector<value> computed(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const fraction& scale = (*scales)[i];
    if (!scale.rounded && scale.over.is_static() && scale.under.is_static()) {
      set_scale(op, axes[i], dims.at(axes[i]),
                static_cast<double>(scale.over.value()) / static_cast<double>(scale.under.value()));
      continue;
    }
    op.dims.at(axes[i]) = scaled_size(dims.at(axes[i]), scale);
    op.scales[axes[i]] = 0;
    computed[i] = b.with_dims(b.slice_axis(n.in(input), 0, static_cast<std::int64_t>(i), 1), {});
  }
  return computed;
}

void set_size(resize& op, std::size_t axis, const dim& in, const dim& out) {
  op.dims.at(axis) = out;
  if (in == out) return;
  if (in.is_static() && out.is_static()) {
    if (in.value() <= 0 || out.value() < 0)
      invalid("cannot resize an axis of " + in.str() + " elements to " + out.str());
    op.scales[axis] = static_cast<double>(out.value()) / static_cast<double>(in.value());
    return;
  }
  dim ratio;
  bool exact = divides_exactly(out, in, ratio) && ratio.is_static() && ratio.value() > 0;
  op.scales[axis] = exact ? static_cast<double>(ratio.value()) : 0;  // 0: use the ratio of the sizes
}

// Uses one scale for all axes, so that the image fits within (not_larger) or covers (not_smaller) the sizes. The scale
// of an image of open size is computed in f32, as onnxruntime does it, and returned for each axis.
std::vector<value> keep_aspect_ratio(builder& b, resize& op, const std::vector<std::size_t>& axes,
                                     const std::vector<dim>& in, bool larger) {
  if (std::ranges::all_of(axes, [&](auto a) { return in[a].is_static() && op.dims.at(a).is_static(); })) {
    std::optional<double> scale;
    for (auto a : axes) {
      double s = op.scales[a];
      scale = !scale ? s : larger ? std::max(*scale, s) : std::min(*scale, s);
    }
    for (auto a : axes) {
      op.scales[a] = *scale;
      op.dims.at(a) = std::llround(*scale * static_cast<double>(in[a].value()));
    }
    return {};
  }
  const auto real = [&](const dim& d) { return b.to_type(b.data_of(d), element_type::f32); };
  value scale;
  for (auto a : axes) {
    value s = b.binary(scalar_function::div, real(op.dims.at(a)), real(in[a]));
    scale = !scale ? s : b.binary(larger ? scalar_function::max : scalar_function::min, scale, s);
  }
  for (auto a : axes) {
    value size = b.binary(scalar_function::add, b.binary(scalar_function::mul, real(in[a]), scale), 0.5);
    const auto known = b.known(b.to_type(b.unary(scalar_function::floor, size), element_type::i64));
    if (!known) refuse("keeps the aspect ratio of a symbolic image; give it dimensions with --dim");
    op.dims.at(a) = known->at(0);
    op.scales[a] = 0;
  }
  return std::vector<value>(axes.size(), scale);
}

std::vector<std::size_t> axes_of(node& n) {
  std::vector<std::size_t> axes;
  if (auto listed = n.opset >= 18 ? n.integers("axes") : std::nullopt) {
    for (auto a : *listed) axes.push_back(static_cast<std::size_t>(normalize_axis(a, n.rank(0))));
  } else {
    for (std::size_t i = 0; i < n.rank(0); ++i) axes.push_back(i);
  }
  return axes;
}

bool is_given(node& n, std::size_t i) { return n.has(i) && !(n.type(i).elements() == dim(0)); }

// Multiplies every axis by a matrix of weights in turn.
// `computed` has scales that are not numbers, or is empty.
value resized_by_weights(node& n, const resize& op, const std::vector<std::size_t>& axes, const resampling& each,
                         const std::vector<value>& computed) {
  constexpr std::int64_t most_weights = std::int64_t{1} << 24;
  builder& b = n.b;
  value x = b.to_type(n.in(0), compute_type(n.type(0).type));
  if (!is_float(x.type().type)) x = b.to_type(x, element_type::f32);
  const element_type type = x.type().type;
  const bool crops = each.coordinates == sampling::crop_and_resize;
  std::vector<double> regions = crops ? n.constant(1, "roi").to_doubles() : std::vector<double>();
  if (crops && regions.size() != 2 * axes.size())
    invalid("roi has " + std::to_string(regions.size()) + " numbers for " + std::to_string(axes.size()) + " axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axes[i];
    const dim from = x.type().dims.at(axis), to = op.dims.at(axis);
    resampling one = each;
    one.scale = op.scales[axis];
    if (crops) one.region = {regions[i], regions[axes.size() + i]};
    const value scale = computed.empty() ? value{} : computed[i];
    if (!scale && from == to && one.scale == 1 && (!crops || one.region == std::pair(0.0, 1.0))) continue;
    std::vector<std::int64_t> swap(x.type().rank());
    std::iota(swap.begin(), swap.end(), 0);
    std::swap(swap[axis], swap.back());
    if (scale || !from.is_static() || !to.is_static()) {
      x = b.permuted(resampled(n, b.permuted(x, swap), op, {one, from, to, scale}), swap);
      continue;
    }
    one.from = from.value(), one.to = to.value();
    if (one.from < 1 || one.to < 1) invalid("cannot resize an axis of " + from.str() + " elements to " + to.str());
    if (one.from > most_weights / one.to)
      refuse("an axis of " + from.str() + " elements resampled to " + to.str() + " needs too many weights");
    const resampling_weights weights = weights_of(op, one);
    value matrix = b.constant(literal::from_doubles({type, {from, to}}, weights.matrix));
    x = b.permuted(matmul(b, b.permuted(x, swap), matrix, type), swap);
    if (std::ranges::find(weights.outside, 1) == weights.outside.end()) continue;
    std::vector<std::byte> bits(weights.outside.size());
    std::ranges::transform(weights.outside, bits.begin(), [](std::uint8_t bit) { return std::byte{bit}; });
    value outside = b.constant(literal({element_type::boolean, {to}}, std::move(bits)));
    outside = b.along_axis(outside, static_cast<std::int64_t>(axis), x.type().rank());
    x = b.where(outside, b.scalar(type, n.real("extrapolation_value", 0)), x);
  }
  return b.to_type(x, n.type(0).type);
}

// Booleans are resampled as bytes.
value resampled_elements(node& n, resize op) {
  builder& b = n.b;
  const bool boolean = n.type(0).type == element_type::boolean;
  value x = boolean ? b.to_type(n.in(0), element_type::u8) : n.in(0);
  return b.to_type(b.add(std::move(op), {x}), n.type(0).type);
}

std::vector<value> resized(node& n) {
  const auto dims = n.dims(0);
  auto axes = axes_of(n);
  resize op{dims, std::vector<double>(dims.size(), 1.0)};
  std::string mode = n.text("mode", "nearest"),
              coordinates = n.text("coordinate_transformation_mode", n.opset < 11 ? "asymmetric" : "half_pixel"),
              nearest = n.text("nearest_mode", n.opset < 11 ? "floor" : "round_prefer_floor");
  resampling each{.antialias = n.integer("antialias", 0) != 0};
  if (coordinates == "tf_crop_and_resize") each.coordinates = sampling::crop_and_resize;
  if (coordinates == "tf_half_pixel_for_nn") each.coordinates = sampling::half_pixel_for_nearest;
  const bool by_weights = each.antialias || each.coordinates != sampling::of_operation;
  if (each.coordinates != sampling::of_operation) coordinates = "half_pixel";
  op.mode = enumerator_of<resize_mode>("mode", mode);
  op.coordinates = enumerator_of<resize_coordinates>("coordinate_transformation_mode", coordinates);
  op.nearest = enumerator_of<resize_nearest>("nearest_mode", nearest);
  op.cubic_coefficient = n.real("cubic_coeff_a", -0.75);
  op.exclude_outside = n.integer("exclude_outside", 0) != 0;
  std::size_t scales_at = n.opset < 11 ? 1 : 2, sizes_at = 3;
  std::vector<value> computed;
  if (is_given(n, scales_at) && !n.b.constant_of(n.in(scales_at))) {
    computed = set_computed_scales(n, op, scales_at, axes);
  } else if (is_given(n, scales_at)) {
    literal scales = n.constant(scales_at, "scales");
    if (scales.type().element_count() != static_cast<std::int64_t>(axes.size()))
      invalid("scales has " + scales.type().str() + " for " + std::to_string(axes.size()) + " axes");
    for (std::size_t i = 0; i < axes.size(); ++i)
      set_scale(op, axes[i], dims.at(axes[i]), scales.at(static_cast<std::int64_t>(i)));
  } else if (is_given(n, sizes_at)) {
    auto sizes = n.known(sizes_at, "sizes");
    if (sizes.size() != axes.size())
      invalid("sizes has " + std::to_string(sizes.size()) + " entries for " + std::to_string(axes.size()) + " axes");
    for (std::size_t i = 0; i < axes.size(); ++i) set_size(op, axes[i], dims.at(axes[i]), sizes[i]);
    const std::string policy =
        one_of(n, "keep_aspect_ratio_policy", "stretch", {"stretch", "not_larger", "not_smaller"});
    if (policy != "stretch") computed = keep_aspect_ratio(n.b, op, axes, dims, policy == "not_smaller");
  } else {
    invalid("has neither scales nor sizes");
  }
  const bool computes = std::ranges::any_of(computed, [](value v) { return static_cast<bool>(v); });
  // In a body, sizes that depend on data are read when the model runs; elsewhere they are exact (sizes_of_data.hpp).
  const bool in_body = &n.b.target() != &n.owner.state().result.main();
  const bool counts = in_body && std::ranges::any_of(axes, [&](std::size_t a) {
                        return !(dims[a] == op.dims[a]) && (is_bounded(dims[a]) || is_bounded(op.dims[a]));
                      });
  if (by_weights || computes || counts) return {resized_by_weights(n, op, axes, each, computed)};
  return {op.dims == dims ? n.in(0) : resampled_elements(n, std::move(op))};
}

std::vector<value> upsampled(node& n) {
  const auto dims = n.dims(0);
  resize op{dims, std::vector<double>(dims.size(), 1.0), resize_mode::nearest, resize_coordinates::asymmetric,
            resize_nearest::floor};
  op.mode = enumerator_of<resize_mode>("mode", n.text("mode", "nearest"));
  std::vector<double> scales;
  if (n.opset >= 9) scales = n.constant(1, "scales").to_doubles();
  else if (const auto* a = n.attribute("scales")) scales.assign(a->floats().begin(), a->floats().end());
  if (scales.size() != dims.size())
    invalid("scales has " + std::to_string(scales.size()) + " entries for " + n.type(0).str());
  for (std::size_t i = 0; i < dims.size(); ++i) set_scale(op, i, dims.at(i), scales[i]);
  return {resampled_elements(n, std::move(op))};
}

constexpr operator_row rows[] = {
    {"Resize", resized, 10, "scales and sizes are numbers or computed from sizes; roi known at import"},
    {"Upsample", upsampled, 7},
};

}  // namespace

std::span<const operator_row> resize_operators() { return rows; }

}  // namespace kiln::onnx_import
