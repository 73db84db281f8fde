// reduce, arg_reduce and cumulative_sum. Floats are summed in double, integers modulo 2^64. As in numpy, a maximum or
// minimum over a NaN is NaN, and arg_reduce returns the first or last NaN.
#include "ir/ops/reduction.hpp"

#include <algorithm>
#include <limits>

#include "ir/reference/parallel.hpp"
#include "ir/reference/scalar_rules.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

template <class T>
constexpr T lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  else return std::numeric_limits<T>::lowest();
}

template <class T>
constexpr T highest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  else return std::numeric_limits<T>::max();
}

// The sum of `count` elements divided by `count`. Integers truncate, and the integer mean of no elements is 0.
template <class T, class Sum>
T mean_of(Sum sum, std::int64_t count) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(sum / static_cast<double>(count));
  else if (count == 0) return T(0);
  else if constexpr (std::is_signed_v<T>) return static_cast<T>(static_cast<std::int64_t>(sum) / count);
  else return static_cast<T>(sum / static_cast<std::uint64_t>(count));
}

// Reduces the elements at `base` + each of `steps`.
template <class Format>
typename Format::compute fold(reduction_kind kind, const typename Format::storage* from, std::int64_t base,
                              std::span<const std::int64_t> steps) {
  using T = typename Format::compute;
  using Sum = accumulator<T>;
  auto over = [&](auto start, auto combine) {
    for (std::int64_t step : steps) start = combine(start, Format::load(from[base + step]));
    return start;
  };
  switch (kind) {
    case reduction_kind::max: return over(lowest<T>(), [](T a, T b) { return larger(a, b); });
    case reduction_kind::min: return over(highest<T>(), [](T a, T b) { return smaller(a, b); });
    case reduction_kind::sum: return static_cast<T>(over(Sum(0), [](Sum a, T b) { return a + static_cast<Sum>(b); }));
    case reduction_kind::mean:
      return mean_of<T>(over(Sum(0), [](Sum a, T b) { return a + static_cast<Sum>(b); }),
                        static_cast<std::int64_t>(steps.size()));
    case reduction_kind::product:
      return static_cast<T>(over(Sum(1), [](Sum a, T b) { return a * static_cast<Sum>(b); }));
  }
  return T();
}

// Whether `candidate` replaces `best` in arg_reduce.
template <class T>
bool wins(T candidate, T best, bool largest, bool ties_win) {
  if (is_nan_value(best)) return ties_win && is_nan_value(candidate);
  if (is_nan_value(candidate)) return true;
  if (candidate == best) return ties_win;
  return largest ? candidate > best : candidate < best;
}

}  // namespace

std::vector<literal> reduce::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  auto dims = inputs[0].type().static_dims(), strides = row_major_strides(dims);
  std::vector<std::int64_t> kept_dims, kept_strides, reduced_dims, reduced_strides;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    bool reduced = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i));
    (reduced ? reduced_dims : kept_dims).push_back(dims[i]);
    (reduced ? reduced_strides : kept_strides).push_back(strides[i]);
  }
  auto bases = offsets(kept_dims, kept_strides), steps = offsets(reduced_dims, reduced_strides);
  std::vector<std::byte> bytes(out.bytes());
  visit_type(out.type, [&](auto format) {
    using Format = decltype(format);
    const auto* from = inputs[0].as<typename Format::storage>().data();
    auto* to = data<typename Format::storage>(bytes);
    parallel_for(static_cast<std::int64_t>(bases.size()), static_cast<std::int64_t>(steps.size()),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     to[i] = Format::store(fold<Format>(kind, from, bases[static_cast<std::size_t>(i)], steps));
                 });
  });
  return {literal(std::move(out), std::move(bytes))};
}

std::vector<literal> arg_reduce::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  auto dims = inputs[0].type().static_dims();
  axis_view view(dims, normalize_axis(axis, dims.size()));
  std::vector<std::int64_t> best(static_cast<std::size_t>(view.outer * view.inner), 0);
  visit_type(inputs[0].type().type, [&](auto format) {
    using Format = decltype(format);
    const auto* from = inputs[0].as<typename Format::storage>().data();
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t n = 0; n < view.inner; ++n) {
        auto element = [&](std::int64_t i) { return Format::load(from[(o * view.length + i) * view.inner + n]); };
        std::int64_t& found = best[static_cast<std::size_t>(o * view.inner + n)];
        for (std::int64_t i = 1; i < view.length; ++i)
          if (wins(element(i), element(found), largest, select_last)) found = i;
      }
  });
  return {literal::of(std::move(out), best)};
}

std::vector<literal> cumulative_sum::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  auto dims = out.static_dims();
  axis_view view(dims, normalize_axis(axis, dims.size()));
  std::vector<std::byte> bytes(out.bytes());
  visit_type(out.type, [&](auto format) {
    using Format = decltype(format);
    using T = typename Format::compute;
    using Sum = accumulator<T>;
    const auto* from = inputs[0].as<typename Format::storage>().data();
    auto* to = data<typename Format::storage>(bytes);
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t n = 0; n < view.inner; ++n) {
        Sum sum = 0;
        for (std::int64_t i = 0; i < view.length; ++i) {
          std::int64_t at = (o * view.length + (reverse ? view.length - 1 - i : i)) * view.inner + n;
          Sum next = sum + static_cast<Sum>(Format::load(from[at]));
          to[at] = Format::store(static_cast<T>(exclusive ? sum : next));
          sum = next;
        }
      }
  });
  return {literal(std::move(out), std::move(bytes))};
}

}  // namespace kiln
