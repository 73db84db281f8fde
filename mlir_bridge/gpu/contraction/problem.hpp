// The form of dot, convolution and transposed convolution that the GPU's generators work on: for every batch, the
// product of a matrix A with rows m and a matrix B with rows n along a common depth k, followed by the fusion's
// epilogue. The operations differ only in how elements of A, B and the result are located. Internal to mlir_bridge/gpu.
// Plain data that refers to one kernel_emitter.
#pragma once

#include <functional>
#include <optional>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/gpu/contraction/packed_weights.hpp"

namespace kiln::gpu {

using namespace codegen;

// Requests `lanes` elements of an operand from depth k = k_tile + k_inner + offset on. k_tile is uniform across
// threads.
struct element_request {
  Value batch, row, k_tile, k_inner;
  std::int64_t offset = 0, lanes = 1;
  // k_tile is a multiple of k_step, and k_inner + offset is less than k_step.
  std::int64_t k_step = 1;
  // True if k may exceed the depth.
  bool beyond = false;
};

struct found_elements {
  // In compute type. Where `inside` is false, these are arbitrary elements of the tensor.
  Value elements;
  // i1, one condition for each `piece` elements; null means always true.
  Value inside;
};

struct operand {
  dim rows = 0, depth = 0;
  bool along_rows = false;  // neighbouring rows lie together in memory rather than neighbouring k
  std::int64_t piece =
      1;  // this many k from a multiple of it on lie together, inside or outside of the tensor as one: a power of two
  // Element type of the operand.
  element_type type = element_type::f32;
  // For rows beyond the last one, returns the elements of any row. Never reads outside the tensor.
  std::function<found_elements(evaluator&, const element_request&)> find;
  // What `find` computes elements of, where the operand consists of such weights.
  std::optional<packed_weights> packed = {};
};

// The types of a product: that of the factors in shared memory, and that of the sums.
struct product_types {
  element_type factor, sum;
  // The factor is i8, but the bytes of A are unsigned.
  bool unsigned_a = false;
};
product_types types_of(element_type a, element_type b);
// Returns true if A is unsigned, but the target's instructions multiply signed bytes only (MFMA, v_dot4_i32_i8). Then A
// is stored minus 128, and every column's sum is corrected by 128 times the sum of the column of B.
bool is_shifted(const gpu_row& row, const product_types& types);

// A product of the same A with other weights of the same form, and the value that it is.
struct second_product {
  operand b;
  value result;
};

struct contraction_problem {
  dim batch = 1, m = 0, n = 0, k = 0;
  operand a, b;
  // Returns the position in the result of `lanes` columns from `column` on, which is a multiple of `lanes`.
  std::function<position(code_builder&, Value batch, Value row, Value column, std::int64_t lanes)> locate;
  dim last_axis = 1;  // extent of the result's last axis, along which columns lie
  // Whether B is to be rearranged first (packing.hpp): its elements are scattered or unaligned, and worth it.
  bool pack_b = false,
       b_constant = false;  // b_constant: it depends on parameters alone (kernel_emitter::only_parameters)
  // What is computed together with the product (joined_product.hpp). Only the generator of few rows can.
  std::optional<second_product> second = {};
  std::optional<double> epsilon = {};
  dim used = 1;  // or 0 at the sizes at which the product has no workgroups (versions.hpp)
  product_types types() const;
  bool is_open() const { return !(batch.is_static() && m.is_static() && n.is_static() && k.is_static()); }
};

// Returns true if `by` divides the size for all values of its symbols.
bool divides(std::int64_t by, const dim& size);
// Returns the size, or for an open one a typical value that is used in cost estimates.
std::int64_t usual_size(const dim& size);

// A position along one axis, with what is known of it.
axis_index axis_at(Value base, std::int64_t low, std::int64_t high, std::int64_t multiple, std::int64_t step = 0);

// Emits the stages that compute the problem and the fusion's outputs. This function chooses among the generators that
// work on contraction_problem; emit_dot and emit_convolution first try the generators specific to their operation.
void emit_contraction(kernel_emitter& e, contraction_problem problem);
// Emits the stages for a product with `second` or `epsilon`, or returns false and emits nothing.
bool emit_joined_contraction(kernel_emitter& e, contraction_problem problem);
// Returns the tuning spaces of the generators that may be chosen. No stage may be open.
std::vector<candidate> contraction_space(kernel_emitter& e, contraction_problem problem);

}  // namespace kiln::gpu
