#include "ir/ops/recurrent.hpp"

#include <array>

#include "ir/ops/check.hpp"

namespace kiln {

std::vector<shape> recurrent::infer(std::span<const shape> inputs) const {
  constexpr std::array<std::int64_t, 3> gates_of{1, 3, 4};  // by recurrent_cell
  detail::input_check check(name(), inputs);
  bool lstm = cell == recurrent_cell::lstm;
  check.arity(lstm ? 5 : 4);
  for (const shape& input : inputs) {
    check.floating(input);
    check.that(input.type == inputs[0].type, "inputs differ in element type");
  }
  check.that(inputs[0].rank() == 3, "gates must be [T, B, G*H]");
  check.that(inputs[1].rank() == 2, "weights must be [G*H, H]");
  const dim& steps = inputs[0].dims[0];
  const dim& batch = inputs[0].dims[1];
  const dim& hidden = inputs[1].dims[1];
  dim gates = hidden * dim(gates_of[static_cast<std::size_t>(cell)]);
  check.that(inputs[0].dims[2] == gates && inputs[1].dims[0] == gates,
             "gates must be [T, B, G*H] and weights [G*H, H], with G the gates of the cell");
  check.dims_equal(inputs[2].dims, {gates}, "recurrent_bias must be [G*H]");
  for (const shape& state : inputs.subspan(3)) check.dims_equal(state.dims, {batch, hidden}, "states must be [B, H]");
  shape state{inputs[0].type, {batch, hidden}};
  std::vector<shape> outputs{{inputs[0].type, {steps, batch, hidden}}, state};
  if (lstm) outputs.push_back(state);
  return outputs;
}

}  // namespace kiln
