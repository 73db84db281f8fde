// Resize and Upsample.
#include <algorithm>
#include <cmath>

#include "aot/onnx/operators.hpp"

namespace kiln::onnx_import {
namespace {

// Returns scale as an exact fraction first / second, if possible. Then floor(in * scale) is a quotient of dims.
std::optional<std::pair<std::int64_t, std::int64_t>> exact_fraction(double scale) {
  for (std::int64_t divisor = 1; divisor <= 1 << 20; divisor *= 2)
    if (double product = scale * static_cast<double>(divisor); product == std::floor(product))
      return std::pair(static_cast<std::int64_t>(product), divisor);
  return std::nullopt;
}

void set_scale(resize& op, std::size_t axis, const dim& in, double scale) {
  constexpr double limit = 1 << 20;
  if (!(scale > 0) || scale > limit) invalid("scale " + std::to_string(scale) + " is out of range");
  op.scales[axis] = scale;
  if (in.is_static() && in.value() > largest_dim) invalid("a dimension of " + in.str() + " is out of range");
  if (in.is_static()) op.dims[axis] = static_cast<std::int64_t>(std::floor(static_cast<double>(in.value()) * scale));
  else if (1 / scale == std::floor(1 / scale)) op.dims[axis] = in / dim(static_cast<std::int64_t>(1 / scale));
  else if (auto fraction = exact_fraction(scale)) op.dims[axis] = in * dim(fraction->first) / dim(fraction->second);
  else refuse("scales dimension '" + in.str() + "' by " + std::to_string(scale) + "; give it a value with --dim");
}

void set_size(resize& op, std::size_t axis, const dim& in, const dim& out) {
  op.dims[axis] = out;
  if (in == out) return;
  if (in.is_static() && out.is_static()) {
    if (in.value() <= 0 || out.value() < 0) invalid("resizes " + in.str() + " to " + out.str());
    op.scales[axis] = static_cast<double>(out.value()) / static_cast<double>(in.value());
    return;
  }
  dim ratio;
  bool exact = divides_exactly(out, in, ratio) && ratio.is_static() && ratio.value() > 0;
  op.scales[axis] = exact ? static_cast<double>(ratio.value()) : 0;  // 0: use the ratio of the sizes
}

// Uses one scale for all axes, so that the image fits within (not_larger) or covers (not_smaller) the sizes.
void keep_aspect_ratio(resize& op, const std::vector<std::size_t>& axes, const std::vector<dim>& in, bool larger) {
  std::optional<double> scale;
  for (auto a : axes) {
    if (!in[a].is_static() || !op.dims[a].is_static())
      refuse("keeps the aspect ratio of a symbolic image; give it dimensions with --dim");
    double s = op.scales[a];
    scale = !scale ? s : larger ? std::max(*scale, s) : std::min(*scale, s);
  }
  for (auto a : axes) {
    op.scales[a] = *scale;
    op.dims[a] = std::llround(*scale * static_cast<double>(in[a].value()));
  }
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

std::vector<value> resized(node& n) {
  const auto dims = n.dims(0);
  auto axes = axes_of(n);
  resize op{dims, std::vector<double>(dims.size(), 1.0)};
  std::string mode = n.text("mode", "nearest"),
              coordinates = n.text("coordinate_transformation_mode", n.opset < 11 ? "asymmetric" : "half_pixel"),
              nearest = n.text("nearest_mode", n.opset < 11 ? "floor" : "round_prefer_floor"),
              policy = n.text("keep_aspect_ratio_policy", "stretch");
  if (coordinates == "tf_crop_and_resize" || coordinates == "tf_half_pixel_for_nn")
    refuse("coordinate_transformation_mode " + coordinates + " is not supported");
  if (n.integer("antialias", 0)) refuse("antialias=1 is not supported");
  if (!parse_enum(mode, op.mode) || !parse_enum(coordinates, op.coordinates) || !parse_enum(nearest, op.nearest))
    invalid("mode '" + mode + "', '" + coordinates + "', '" + nearest + "' is unknown");
  op.cubic_coefficient = n.real("cubic_coeff_a", -0.75);
  op.exclude_outside = n.integer("exclude_outside", 0) != 0;
  std::size_t scales_at = n.opset < 11 ? 1 : 2, sizes_at = 3;
  if (is_given(n, scales_at)) {
    literal scales = n.constant(scales_at, "scales");
    if (scales.type().element_count() != static_cast<std::int64_t>(axes.size()))
      invalid("scales has " + scales.type().str() + " for " + std::to_string(axes.size()) + " axes");
    for (std::size_t i = 0; i < axes.size(); ++i)
      set_scale(op, axes[i], dims[axes[i]], scales.at(static_cast<std::int64_t>(i)));
  } else if (is_given(n, sizes_at)) {
    auto sizes = n.known(sizes_at, "sizes");
    if (sizes.size() != axes.size())
      invalid("sizes has " + std::to_string(sizes.size()) + " entries for " + std::to_string(axes.size()) + " axes");
    for (std::size_t i = 0; i < axes.size(); ++i) set_size(op, axes[i], dims[axes[i]], sizes[i]);
    if (policy != "stretch") {
      if (policy != "not_larger" && policy != "not_smaller")
        invalid("keep_aspect_ratio_policy '" + policy + "' is unknown");
      keep_aspect_ratio(op, axes, dims, policy == "not_smaller");
    }
  } else {
    invalid("has neither scales nor sizes");
  }
  return {op.dims == dims ? n.in(0) : n.b.add(std::move(op), {n.in(0)})};
}

std::vector<value> upsampled(node& n) {
  const auto dims = n.dims(0);
  resize op{dims, std::vector<double>(dims.size(), 1.0), resize_mode::nearest, resize_coordinates::asymmetric,
            resize_nearest::floor};
  if (std::string mode = n.text("mode", "nearest"); !parse_enum(mode, op.mode))
    invalid("mode '" + mode + "' is unknown");
  std::vector<double> scales;
  if (n.opset >= 9) scales = n.constant(1, "scales").to_doubles();
  else if (const auto* a = n.attribute("scales")) scales.assign(a->floats().begin(), a->floats().end());
  if (scales.size() != dims.size())
    invalid("scales has " + std::to_string(scales.size()) + " entries for " + n.type(0).str());
  for (std::size_t i = 0; i < dims.size(); ++i) set_scale(op, i, dims[i], scales[i]);
  return {n.b.add(std::move(op), {n.in(0)})};
}

constexpr operator_row rows[] = {
    {"Resize", resized, 10, "no antialias, no tf_crop_and_resize; scales or sizes known at import"},
    {"Upsample", upsampled, 7},
};

}  // namespace

std::span<const operator_row> resize_operators() { return rows; }

}  // namespace kiln::onnx_import
