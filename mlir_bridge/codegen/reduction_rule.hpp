// The arithmetic of reductions, independent of the order of iteration: sums, means, products, extremes, and the index
// of an extreme.
#pragma once

#include "ir/ops/reduction.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::codegen {

struct reduction_rule {
  reduction_kind kind;
  element_type tensor;  // element type of the tensor
  // Type of the accumulator. Means of integers are summed in 64 bits.
  element_type type;

  explicit reduction_rule(reduction_kind kind, element_type tensor);
  // Converts an element of the tensor (a compute value) to the accumulator's type.
  Value widen(code_builder& b, Value x) const;
  // Returns the neutral element of the reduction.
  Value start(code_builder& b, std::int64_t lanes) const;
  Value combine(code_builder& b, Value a, Value c) const;
  mlir::vector::CombiningKind combining() const;
  // Converts the total to the result, in the compute type of the tensor.
  Value finish(code_builder& b, Value total, std::int64_t count) const;
  // The same for a number of elements that is known only at run time; `count` is a scalar of `type`.
  Value finish_mean(code_builder& b, Value total, Value count) const;
};

// Finds the index of the largest or smallest element. A state is {best value, its index}; index -1 means that no
// element was seen. NaN is preferred to every number.
struct arg_reduction_rule {
  arg_reduce op;
  // Element type of the tensor.
  element_type type;
  // Type in which elements are compared; bools are compared as bytes.
  element_type compared;

  arg_reduction_rule(const arg_reduce& op, element_type type);
  values start(code_builder& b, std::int64_t lanes, element_type index) const;
  // Adds one element to a state. Elements must be added in order of their index. `valid` is i1, or null for true.
  values meet(code_builder& b, Value x, Value index, Value valid, std::span<const Value> state) const;
  // Combines two states. Their order does not matter.
  values join(code_builder& b, std::span<const Value> a, std::span<const Value> c) const;

 private:
  Value strictly(code_builder& b, Value x, Value y) const;
  Value tied(code_builder& b, Value x, Value y) const;
};

// Maps a position in the input to the position in the result.
position reduced_position(code_builder& code, const position& where, const std::vector<std::int64_t>& axes,
                          bool keep_dims);

}  // namespace kiln::codegen
