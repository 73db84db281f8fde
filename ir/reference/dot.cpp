#include "ir/ops/contraction.hpp"
#include "ir/reference/panel_product.hpp"
#include "ir/reference/parallel.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

template <class Sum>
literal product_of(const dot& op, std::span<const literal> inputs, shape out) {
  auto dims = out.static_dims();
  std::int64_t columns = dims[dims.size() - 1], rows = dims[dims.size() - 2];
  std::int64_t batch = product(std::span(dims).first(dims.size() - 2));
  std::int64_t depth = inputs[0].type().dims[dims.size() - (op.transpose_a ? 2 : 1)].value();
  auto a = widened<Sum>(inputs[0]);
  auto b = widened<Sum>(inputs[1]);
  if (op.transpose_a) {
    std::vector<Sum> turned(a.size());
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t k = 0; k < depth; ++k)
        for (std::int64_t m = 0; m < rows; ++m)
          turned[static_cast<std::size_t>((n * rows + m) * depth + k)] =
              a[static_cast<std::size_t>((n * depth + k) * rows + m)];
    a = std::move(turned);
  }
  std::int64_t row_stride = op.transpose_b ? 1 : columns, column_stride = op.transpose_b ? depth : 1;
  std::vector<Sum> sums(static_cast<std::size_t>(batch * rows * columns));
  std::int64_t panels = panel_count(columns);
  parallel_for(batch * panels, rows * depth * panel_columns, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Sum> panel;
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t n = i / panels;
      const Sum* from = b.data() + n * depth * columns;
      Sum* to = sums.data() + n * rows * columns;
      panel_product(
          a.data() + n * rows * depth, rows, depth, columns, i % panels, panel,
          [&](Sum* packed, std::int64_t first, std::int64_t width) {
            for (std::int64_t k = 0; k < depth; ++k)
              for (std::int64_t c = 0; c < width; ++c)
                packed[k * panel_columns + c] = from[k * row_stride + (first + c) * column_stride];
          },
          [&](std::int64_t row, std::int64_t first, std::int64_t width, const Sum* values) {
            std::copy_n(values, width, to + row * columns + first);
          });
    }
  });
  return narrowed(std::move(out), sums);
}

}  // namespace

std::vector<literal> dot::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  return {with_sums_of(inputs[0].type().type, out.type,
                       [&](auto sum) { return product_of<decltype(sum)>(*this, inputs, out); })};
}

}  // namespace kiln
