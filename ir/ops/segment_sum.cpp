#include "ir/ops/segment_sum.hpp"

#include "ir/ops/check.hpp"
#include "ir/reference/scalar_rules.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {

std::vector<shape> segment_sum::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  check.arity(2);
  check.numeric(inputs[0]);
  check.that(inputs[0].rank() > 0, "needs data with rows");
  check.index_type(inputs[1]);
  check.that(inputs[1].rank() == 1, "needs one id for each row");
  check.equal(inputs[0].dims[0], inputs[1].dims[0], "needs one id for each row");
  check.extent(segments, "segments");
  shape out = inputs[0];
  out.dims[0] = segments;
  return {check.result(out)};
}

std::vector<literal> segment_sum::evaluate(std::span<const literal> inputs) const {
  using namespace reference;
  shape out = output_shapes(*this, inputs)[0];
  const std::int64_t rows = inputs[0].type().static_dims()[0];
  const std::int64_t width = rows == 0 ? 0 : inputs[0].type().element_count() / rows;
  return {visit_type(out.type, [&](auto format) {
    using Sum = accumulator<typename decltype(format)::compute>;
    auto elements = widened<Sum>(inputs[0]);
    std::vector<Sum> sums(static_cast<std::size_t>(out.element_count()));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t id = inputs[1].at_int(row);
      if (id < 0 || id >= segments) continue;
      for (std::int64_t i = 0; i < width; ++i)
        sums[static_cast<std::size_t>(id * width + i)] += elements[static_cast<std::size_t>(row * width + i)];
    }
    return narrowed(out, sums);
  })};
}

}  // namespace kiln
