// Small fusions that together hold every operator a kernel may hold. Named as to_fusion names things, so that a round
// trip is an equality of text. Sizes are odd and differ from axis to axis.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/module.hpp"

namespace kiln::test {

// One operation over parameters of these shapes.
struct sample {
  operation op;
  std::vector<shape> inputs;
};

// Every operator except elementwise functions, several times where attributes matter.
std::vector<sample> operator_samples();
// Every scalar function, over every kind of operand that it is for.
std::vector<sample> elementwise_samples();

std::unique_ptr<module> fusion_of(const sample& s);

// A matrix product with a transposed weight, a broadcast bias, a scalar constant and a relu, symbolic in `batch`; two
// outputs.
std::unique_ptr<module> symbolic_dot_fusion();

// Values for the module's parameters: indices in range, other numbers in [-1.5, 1.5], all different where the type
// allows.
std::vector<literal> sample_inputs(const module& fusion);

}  // namespace kiln::test
