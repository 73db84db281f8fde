// softmax and normalize: two passes over each group of elements, in double precision.
#include "ir/ops/reduction.hpp"

#include <algorithm>
#include <cmath>

#include "ir/reference/parallel.hpp"
#include "ir/reference/scalar_rules.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

// For each group, reads the elements at base + each of `steps` as doubles, applies f(std::span<double>) to them, and
// stores the rounded result.
template <class F>
literal by_group(const literal& input, shape out, const std::vector<std::int64_t>& bases,
                 const std::vector<std::int64_t>& steps, const F& f) {
  std::vector<std::byte> bytes(out.bytes());
  visit_type(out.type, [&](auto format) {
    using Format = decltype(format);
    using T = typename Format::compute;
    if constexpr (std::is_floating_point_v<T>) {
      const auto* from = input.as<typename Format::storage>().data();
      auto* to = data<typename Format::storage>(bytes);
      parallel_for(static_cast<std::int64_t>(bases.size()), 16 * static_cast<std::int64_t>(steps.size()),
                   [&](std::int64_t begin, std::int64_t end) {
                     std::vector<double> group(steps.size());
                     for (std::int64_t g = begin; g < end; ++g) {
                       std::int64_t base = bases[static_cast<std::size_t>(g)];
                       for (std::size_t i = 0; i < group.size(); ++i) group[i] = Format::load(from[base + steps[i]]);
                       f(std::span<double>(group));
                       for (std::size_t i = 0; i < group.size(); ++i)
                         to[base + steps[i]] = Format::store(static_cast<T>(group[i]));
                     }
                   });
    }
  });
  return literal(std::move(out), std::move(bytes));
}

// The bases and steps of the groups along `axes` (sorted).
struct groups {
  groups(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& axes) {
    auto strides = row_major_strides(dims);
    std::vector<std::int64_t> kept_dims, kept_strides, group_dims, group_strides;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      bool inside = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i));
      (inside ? group_dims : kept_dims).push_back(dims[i]);
      (inside ? group_strides : kept_strides).push_back(strides[i]);
    }
    bases = offsets(kept_dims, kept_strides);
    steps = offsets(group_dims, group_strides);
  }
  std::vector<std::int64_t> bases, steps;
};

}  // namespace

std::vector<literal> softmax::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  groups rows(out.static_dims(), {normalize_axis(axis, out.rank())});
  return {by_group(inputs[0], std::move(out), rows.bases, rows.steps, [&](std::span<double> row) {
    double top = -INFINITY, sum = 0;
    for (double x : row) top = larger(top, x);
    for (double x : row) sum += std::exp(x - top);
    for (double& x : row) x = logarithm ? x - top - std::log(sum) : std::exp(x - top) / sum;
  })};
}

std::vector<literal> normalize::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  groups parts(out.static_dims(), axes);
  return {by_group(inputs[0], std::move(out), parts.bases, parts.steps, [&](std::span<double> part) {
    auto count = static_cast<double>(part.size());
    double mean = 0, square = 0;
    if (centered)
      for (double x : part) mean += x / count;
    for (double x : part) square += (x - mean) * (x - mean);
    double scale = 1 / std::sqrt(square / count + epsilon);
    for (double& x : part) x = (x - mean) * scale;
  })};
}

}  // namespace kiln
