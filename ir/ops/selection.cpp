#include "ir/ops/selection.hpp"

#include <fmt/format.h>

#include "ir/ops/check.hpp"

namespace kiln {

std::vector<shape> top_k::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  check.arity(1);
  check.numeric(inputs[0]);
  auto along = static_cast<std::size_t>(check.axis(axis, inputs[0].rank()));
  const dim& length = inputs[0].dims[along];
  if (k < 0 || (length.is_static() && k > length.value()))
    check.reject(fmt::format("cannot choose {} of {} elements", k, length.str()));
  shape values = inputs[0];
  values.dims[along] = k;
  return {values, values.with_type(element_type::i64)};
}

}  // namespace kiln
