// What reductions do with elements, apart from how these are walked: sums, means, products, extremes, and the index of
// an extreme.
#pragma once

#include "ir/ops/reduction.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::codegen {

struct reduction_rule {
  reduction_kind kind;
  element_type tensor;  // element type of the tensor
  element_type type;    // of the accumulator: means of integers add in 64 bits

  explicit reduction_rule(reduction_kind kind, element_type tensor);
  // An element of the tensor (compute value) as the accumulator's type.
  Value widen(code_builder& b, Value x) const;
  // What changes nothing.
  Value start(code_builder& b, std::int64_t lanes) const;
  Value combine(code_builder& b, Value a, Value c) const;
  mlir::vector::CombiningKind combining() const;
  // The result in the compute type of the tensor.
  Value finish(code_builder& b, Value total, std::int64_t count) const;
  // The same of a mean of a number of elements that is known at run time, as a scalar of `type`.
  Value finish_mean(code_builder& b, Value total, Value count) const;
};

// The index of the largest or smallest element. A state is {best value, its index}; an index of -1 is none yet. NaN
// wins over every number.
struct arg_reduction_rule {
  arg_reduce op;
  element_type type;      // of the tensor
  element_type compared;  // bools compare as bytes

  arg_reduction_rule(const arg_reduce& op, element_type type);
  values start(code_builder& b, std::int64_t lanes, element_type index) const;
  // One more element; those must come in order of index. valid: i1, or null for true.
  values meet(code_builder& b, Value x, Value index, Value valid, std::span<const Value> state) const;
  // Two states, in any order.
  values join(code_builder& b, std::span<const Value> a, std::span<const Value> c) const;

 private:
  Value strictly(code_builder& b, Value x, Value y) const;
  Value tied(code_builder& b, Value x, Value y) const;
};

// The position in the result of a position in the input.
position reduced_position(code_builder& code, const position& where, const std::vector<std::int64_t>& axes,
                          bool keep_dims);

}  // namespace kiln::codegen
