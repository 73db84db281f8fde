// What dot, convolution and transposed convolution are to the GPU: for every batch, the product of a matrix A of rows m
// and a matrix B of rows n along a common depth k, given to the fusion's epilogue. Everything that differs between the
// operations is in how an element of A, B and the result is found. Internal to mlir_bridge/gpu; plain data, made for
// one kernel_emitter which it refers to.
#pragma once

#include <functional>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::gpu {

using namespace codegen;

// Which elements of an operand: `lanes` of them from depth k = k_tile + k_inner + offset on, where k_tile is the same
// for all threads.
struct element_request {
  Value batch, row, k_tile, k_inner;
  std::int64_t offset = 0, lanes = 1;
  std::int64_t k_step = 1;  // k_tile is a multiple of this, and k_inner + offset is below
  bool beyond = false;      // k may reach beyond the depth
};

struct found_elements {
  Value elements;  // compute type; of some element of the tensor where `inside` is false
  Value inside;    // i1, the same for `piece` elements; null: always true
};

struct operand {
  dim rows = 0, depth = 0;
  bool along_rows = false;  // neighbouring rows lie together in memory rather than neighbouring k
  std::int64_t piece =
      1;  // this many k from a multiple of it on lie together, inside or outside of the tensor as one: a power of two
  element_type type = element_type::f32;  // of the elements
  // Rows beyond the last one give any row's elements; nothing outside of the tensor is read.
  std::function<found_elements(evaluator&, const element_request&)> find;
};

// What products are made in: the type of the factors in shared memory, and of the sums.
struct product_types {
  element_type factor, sum;
};
product_types types_of(element_type a, element_type b);

struct contraction_problem {
  dim batch = 1, m = 0, n = 0, k = 0;
  operand a, b;
  // The position in the result of `lanes` columns from `column` on, which is a multiple of them.
  std::function<position(code_builder&, Value batch, Value row, Value column, std::int64_t lanes)> locate;
  dim last_axis = 1;  // extent of the result's last axis, which columns walk along
  // Whether B is to be rearranged first (packing.hpp): its elements are scattered or unaligned, and worth it.
  bool pack_b = false,
       b_constant = false;  // b_constant: it depends on parameters alone (kernel_emitter::only_parameters)
  product_types types() const;
  bool is_open() const { return !(batch.is_static() && m.is_static() && n.is_static() && k.is_static()); }
};

// Whether `by` divides the size, whatever it is.
bool divides(std::int64_t by, const dim& size);
// The size, or, of an open one, what it may typically be: for costs.
std::int64_t usual_size(const dim& size);

// A position along one axis, with what is known of it.
axis_index axis_at(Value base, std::int64_t low, std::int64_t high, std::int64_t multiple, std::int64_t step = 0);

// Emits the stages that compute the problem and the fusion's outputs. The one place where generators that know nothing
// of dot and convolution are chosen; those that do are asked by emit_dot and emit_convolution.
void emit_contraction(kernel_emitter& e, contraction_problem problem);
// The spaces of the generators that may be chosen. No stage may be open.
std::vector<candidate> contraction_space(kernel_emitter& e, contraction_problem problem);

}  // namespace kiln::gpu
