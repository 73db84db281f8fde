// top_k. NaN ranks above every number, as numpy sorts it.
#include "ir/ops/selection.hpp"

#include <algorithm>
#include <numeric>

#include "ir/reference/scalar_rules.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {

using namespace reference;

std::vector<literal> top_k::evaluate(std::span<const literal> inputs) const {
  auto outs = output_shapes(*this, inputs);
  auto dims = inputs[0].type().static_dims();
  axis_view view(dims, normalize_axis(axis, dims.size()));
  std::vector<std::byte> values(outs[0].bytes());
  std::vector<std::int64_t> indices(static_cast<std::size_t>(outs[1].element_count()));
  visit_type(outs[0].type, [&](auto format) {
    using Format = decltype(format);
    const auto* from = inputs[0].as<typename Format::storage>().data();
    auto* to = data<typename Format::storage>(values);
    std::vector<std::int64_t> order(static_cast<std::size_t>(view.length));
    for (std::int64_t o = 0; o < view.outer; ++o)
      for (std::int64_t n = 0; n < view.inner; ++n) {
        auto position = [&](std::int64_t i) { return (o * view.length + i) * view.inner + n; };
        std::iota(order.begin(), order.end(), 0);
        auto above = [](auto a, auto b) { return is_nan_value(a) ? !is_nan_value(b) : a > b; };
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](std::int64_t i, std::int64_t j) {
          auto a = Format::load(from[position(i)]), b = Format::load(from[position(j)]);
          bool first = largest ? above(a, b) : above(b, a), second = largest ? above(b, a) : above(a, b);
          return first || (!second && i < j);
        });
        for (std::int64_t i = 0; i < k; ++i) {
          std::int64_t at = (o * k + i) * view.inner + n, chosen = order[static_cast<std::size_t>(i)];
          to[at] = from[position(chosen)];
          indices[static_cast<std::size_t>(at)] = chosen;
        }
      }
  });
  return {literal(outs[0], std::move(values)), literal::of(outs[1], indices)};
}

}  // namespace kiln
