// Small fusions that together contain every operator allowed in a kernel. Names are those that to_fusion gives, so that
// a round trip can be tested by comparing texts. Sizes are odd and differ from axis to axis.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/module.hpp"

namespace kiln::test {

// A single operation on parameters of these shapes.
struct sample {
  operation op;
  std::vector<shape> inputs;
};

// Every operator except elementwise functions; several times if attributes matter.
std::vector<sample> operator_samples();
// Every scalar function, for every kind of operand that it supports.
std::vector<sample> elementwise_samples();

std::unique_ptr<module> fusion_of(const sample& s);

// A matrix product with a transposed weight, a broadcast bias, a scalar constant and a relu, symbolic in `batch`; two
// outputs.
std::unique_ptr<module> symbolic_dot_fusion();

// Values for the module's parameters: valid indices, other numbers in [-1.5, 1.5], all different if the type allows.
std::vector<literal> sample_inputs(const module& fusion);

}  // namespace kiln::test
