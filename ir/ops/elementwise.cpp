#include "ir/ops/elementwise.hpp"

#include <fmt/format.h>

#include "ir/ops/check.hpp"
#include "ir/reference/scalar_domain.hpp"

namespace kiln {

std::vector<shape> elementwise::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  const scalar_function_row& function_row = row(function);
  check.arity(static_cast<std::size_t>(function_row.arity));
  if (function == scalar_function::where)
    check.that(inputs[0].type == element_type::boolean, "the condition must be bool");
  std::span<const shape> operands = function == scalar_function::where ? inputs.subspan(1) : inputs;
  element_type type = operands[0].type;
  for (const shape& operand : operands) check.that(operand.type == type, "operands differ in element type");
  for (const shape& input : inputs)
    check.dims_equal(inputs[0].dims, input.dims, "operands differ in dimensions (broadcast them first)");
  if (!accepts(domain_of(function), type)) check.reject(fmt::format("is not defined on {}", kiln::name(type)));
  return {inputs[0].with_type(function_row.result == scalar_result::same ? type : element_type::boolean)};
}

std::vector<shape> convert::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  check.arity(1);
  return {inputs[0].with_type(type)};
}

std::vector<shape> bit_cast::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  check.arity(1);
  check.that(storage_bits(inputs[0].type) == storage_bits(type), "the types differ in width");
  return {inputs[0].with_type(type)};
}

}  // namespace kiln
