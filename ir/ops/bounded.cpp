#include "ir/ops/bounded.hpp"

#include "ir/error.hpp"
#include "ir/ops/check.hpp"
#include "ir/ops/movement.hpp"

namespace kiln {

std::vector<shape> bounded::infer(std::span<const shape> inputs) const {
  detail::input_check check(name(), inputs);
  check.arity(2);
  check.that(axis >= 0 && axis < static_cast<std::int64_t>(inputs[0].rank()), "the axis is not one of the data");
  check.that(inputs[1] == shape{element_type::i64, {1}}, "the count must be i64[1]");
  return {inputs[0]};
}

std::vector<literal> bounded::evaluate(std::span<const literal> inputs) const {
  return {first_of(inputs[0], axis, inputs[1].at_int(0))};
}

literal first_of(const literal& data, std::int64_t axis, std::int64_t count) {
  slice op{std::vector<std::int64_t>(data.type().rank(), 0), data.type().dims,
           std::vector<std::int64_t>(data.type().rank(), 1)};
  dim& length = op.lengths.at(static_cast<std::size_t>(axis));
  if (count < 0 || count > length.value())
    throw error(error_kind::invalid_model, "counted: a count of " + std::to_string(count) + " along axis " +
                                               std::to_string(axis) + " of " + data.type().str());
  length = count;
  return op.evaluate(std::span(&data, 1))[0];
}

}  // namespace kiln
