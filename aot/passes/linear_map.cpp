#include "aot/passes/linear_map.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aot/kernels/traits.hpp"
#include "aot/passes/facts.hpp"
#include "ir/ops/all.hpp"

namespace kiln {
namespace {

std::int64_t product(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

bool all_static(const std::vector<dim>& dims) {
  return std::ranges::all_of(dims, [](const dim& d) { return d.is_static(); });
}

std::optional<linear_map> find_unbiased(value v) {
  const operation& op = v.producer->op();
  const auto* d = op.get_if<dot>();
  const auto* c = op.get_if<convolution>();
  if ((!d && !c) || !is_float(v)) return std::nullopt;
  const value x = v.producer->inputs()[0], w = v.producer->inputs()[1];
  if (!is_constant_like(w) || !all_static(w.type().dims)) return std::nullopt;
  if (x.type().type != v.type().type || w.type().type != v.type().type) return std::nullopt;
  const std::vector<std::int64_t> dims = w.type().static_dims();
  linear_map map{.input = x, .weights = w, .result = v};
  if (d) {
    if (dims.size() != 2 || d->transpose_a) return std::nullopt;
    map.is_dot = true, map.transposed = d->transpose_b;
    map.channels = dims[d->transpose_b ? 1 : 0], map.filters = dims[d->transpose_b ? 0 : 1];
    return map;
  }
  if (c->layout != tensor_layout::channels_first) return std::nullopt;
  map.geometry = *c;
  map.groups = c->groups, map.filters = dims[0], map.channels = dims[1] * c->groups;
  map.window.assign(dims.begin() + 2, dims.end());
  return map;
}

// Returns the dims of a row-major weight literal of this map, before a product's matrix is transposed.
std::vector<std::int64_t> row_major_dims(const linear_map& map) {
  std::vector<std::int64_t> dims{map.filters, map.channels / map.groups};
  dims.insert(dims.end(), map.window.begin(), map.window.end());
  return dims;
}

std::vector<double> transposed(const std::vector<double>& from, std::size_t rows, std::size_t columns) {
  std::vector<double> to(from.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  return to;
}

// Composes one spatial axis. `biased` is true if the inner map has a bias. Returns the reason for a refusal, or "".
std::string_view compose_axis(const linear_map& outer, const linear_map& inner, std::size_t axis, bool biased,
                              linear_map& made) {
  const convolution &o = outer.geometry, &i = inner.geometry;
  convolution& g = made.geometry;
  if (o.pads_begin[axis] < 0 || o.pads_end[axis] < 0 || i.pads_begin[axis] < 0 || i.pads_end[axis] < 0)
    return "a pad is negative";
  const bool padded = o.pads_begin[axis] != 0 || o.pads_end[axis] != 0;
  g.strides.push_back(o.strides[axis] * i.strides[axis]);
  if (outer.window[axis] == 1 && !padded) {
    g.dilations.push_back(i.dilations[axis]);
    g.pads_begin.push_back(i.pads_begin[axis]);
    g.pads_end.push_back(i.pads_end[axis]);
    made.window.push_back(inner.window[axis]);
    return {};
  }
  if (inner.window[axis] != 1)
    return padded ? "the second one pads what the first one sums over its window"
                  : "both windows are larger than one element";
  if (padded && biased) return "the second one's zero padding does not have the first one's bias";
  if (padded && i.strides[axis] != 1) return "the second one pads what the first one takes in strides";
  g.dilations.push_back(o.dilations[axis] * i.strides[axis]);
  g.pads_begin.push_back(o.pads_begin[axis] + i.pads_begin[axis]);
  g.pads_end.push_back(o.pads_end[axis] + i.pads_end[axis]);
  made.window.push_back(outer.window[axis]);
  return {};
}

}  // namespace

std::int64_t linear_map::taps() const { return product(window); }

double linear_map::products() const {
  return estimated_elements(result.type()) * static_cast<double>(channels / groups * taps());
}

double linear_map::weight_elements() const { return static_cast<double>(filters * (channels / groups) * taps()); }

std::optional<linear_map> find_linear_map(const module& m, value v) {
  if (auto map = find_unbiased(v)) return map;
  if (!is_function(v, scalar_function::add)) return std::nullopt;
  for (std::size_t k : {0, 1}) {
    const value y = v.producer->inputs()[k], added = v.producer->inputs()[1 - k];
    auto map = find_unbiased(y);
    if (!map || !is_constant_like(added) || !has_single_use(m, y)) continue;
    const value bias = along_one_axis(added, 1);
    if (!bias || !bias.type().is_static()) continue;
    if (const std::int64_t count = bias.type().element_count(); count != 1 && count != map->filters) continue;
    map->bias = bias, map->result = v;
    return map;
  }
  return std::nullopt;
}

linear_numbers numbers_of(const linear_map& map) {
  linear_numbers numbers{evaluate_constant_like(map.weights).to_doubles(), {}};
  if (map.is_dot && !map.transposed)
    numbers.weights =
        transposed(numbers.weights, static_cast<std::size_t>(map.channels), static_cast<std::size_t>(map.filters));
  if (map.bias) {
    numbers.bias = evaluate_constant_like(map.bias).to_doubles();
    numbers.bias.resize(static_cast<std::size_t>(map.filters), numbers.bias[0]);
  }
  return numbers;
}

std::vector<double> with_groups(const linear_map& map, const std::vector<double>& weights, std::int64_t groups) {
  if (groups == map.groups) return weights;
  const std::int64_t narrow = map.channels / map.groups * map.taps(), wide = map.channels / groups * map.taps(),
                     joined = map.groups / groups;
  std::vector<double> result(static_cast<std::size_t>(map.filters * wide));
  for (std::int64_t f = 0; f < map.filters; ++f) {
    const std::int64_t place = f / (map.filters / map.groups) % joined;
    std::copy_n(weights.begin() + f * narrow, narrow, result.begin() + f * wide + place * narrow);
  }
  return result;
}

std::optional<literal> weight_literal(const linear_map& like, const std::vector<double>& weights) {
  std::vector<std::int64_t> sizes = row_major_dims(like);
  const bool turned = like.is_dot && !like.transposed;
  if (turned) std::swap(sizes[0], sizes[1]);
  shape type{like.result.type().type, {sizes.begin(), sizes.end()}};
  literal made = literal::from_doubles(type, turned ? transposed(weights, static_cast<std::size_t>(like.filters),
                                                                 static_cast<std::size_t>(like.channels))
                                                    : weights);
  const auto stored = made.to_doubles();
  if (!std::ranges::all_of(stored, [](double w) { return std::isfinite(w); })) return std::nullopt;
  return made;
}

composition compose(const linear_map& outer, const linear_map& inner) {
  composition made{.map = {.input = inner.input,
                           .result = outer.result,
                           .is_dot = outer.is_dot,
                           .transposed = outer.transposed,
                           .channels = inner.channels,
                           .filters = outer.filters,
                           .groups = std::gcd(outer.groups, inner.groups)}};
  if (outer.is_dot != inner.is_dot || outer.window.size() != inner.window.size() || outer.channels != inner.filters ||
      outer.result.type().type != inner.result.type().type)
    return {.map = {}, .refusal = "they do not have the same axes and type"};
  for (std::size_t axis = 0; axis < outer.window.size(); ++axis)
    if (auto refusal = compose_axis(outer, inner, axis, static_cast<bool>(inner.bias), made.map); !refusal.empty())
      return {.map = {}, .refusal = refusal};
  made.map.geometry.groups = made.map.groups;
  return made;
}

linear_numbers composed_numbers(const linear_map& outer, const linear_map& inner, const linear_map& composed) {
  const linear_numbers first = numbers_of(inner), second = numbers_of(outer);
  const std::int64_t taps_outer = outer.taps(), taps_inner = inner.taps(), taps = composed.taps();
  const std::int64_t between = outer.channels / outer.groups, narrow = inner.channels / inner.groups,
                     wide = composed.channels / composed.groups;
  linear_numbers made{std::vector<double>(static_cast<std::size_t>(outer.filters * wide * taps)), second.bias};
  if (!first.bias.empty()) made.bias.resize(static_cast<std::size_t>(outer.filters));
  // On each axis at least one of the two windows has a single element, so the composed tap is the sum of the two
  // positions.
  std::vector<std::int64_t> tap_of(static_cast<std::size_t>(taps_outer * taps_inner));
  for (std::int64_t a = 0; a < taps_outer; ++a)
    for (std::int64_t b = 0; b < taps_inner; ++b) {
      std::int64_t tap = 0, stride = 1, left = a, right = b;
      for (std::size_t axis = outer.window.size(); axis-- > 0;) {
        tap += (left % outer.window[axis] + right % inner.window[axis]) * stride;
        left /= outer.window[axis], right /= inner.window[axis], stride *= composed.window[axis];
      }
      tap_of[static_cast<std::size_t>(a * taps_inner + b)] = tap;
    }
  for (std::int64_t f = 0; f < outer.filters; ++f)
    for (std::int64_t j = 0; j < between; ++j) {
      const std::int64_t m = f / (outer.filters / outer.groups) * between + j;
      const std::int64_t first_channel =
          m / (inner.filters / inner.groups) * narrow - f / (outer.filters / composed.groups) * wide;
      for (std::int64_t a = 0; a < taps_outer; ++a) {
        const double factor = second.weights[static_cast<std::size_t>((f * between + j) * taps_outer + a)];
        if (!first.bias.empty())
          made.bias[static_cast<std::size_t>(f)] += factor * first.bias[static_cast<std::size_t>(m)];
        const double* from = first.weights.data() + m * narrow * taps_inner;
        double* to = made.weights.data() + (f * wide + first_channel) * taps;
        for (std::int64_t c = 0; c < narrow; ++c)
          for (std::int64_t b = 0; b < taps_inner; ++b)
            to[c * taps + tap_of[static_cast<std::size_t>(a * taps_inner + b)]] += factor * from[c * taps_inner + b];
      }
    }
  return made;
}

}  // namespace kiln
