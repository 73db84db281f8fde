#include "ir/ops/data_sizes.hpp"

#include "ir/invalid_shape.hpp"
#include "ir/ops/check.hpp"

namespace kiln {

std::vector<shape> data_sizes::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  check.arity(1 + sizes.size());
  for (const shape& number : inputs.subspan(1))
    check.that(number == shape{element_type::i64, {1}}, "a size must be i64[1]");
  return {inputs[0]};
}

std::vector<literal> data_sizes::evaluate(std::span<const literal> inputs) const {
  for (std::size_t i = 0; i < sizes.size(); ++i) check_data_size(inputs[1 + i].at_int(0), sizes[i].value());
  return {inputs[0]};
}

void check_data_size(std::int64_t computed, std::int64_t bound) {
  if (computed != bound)
    throw error(invalid_shape, "the data of this run make a size " + std::to_string(computed) +
                                   ", and the program was made for " + std::to_string(bound) +
                                   ": ask the session for the program of these inputs");
}

}  // namespace kiln
