// What kernel formation knows about operations: which can be inlined into a kernel's loops, which anchor a kernel of
// their own, what one element costs, and how often an anchor reads each element of an operand. Figures are relative and
// hold for any target: one is an addition.
#pragma once

#include "ir/instruction.hpp"

namespace kiln {

enum class kernel_role : std::uint8_t {
  structure,  // parameter, constant, if, loop, code_object: never inside a kernel (but for scalar constants)
  inlinable,  // computes each element from few elements of its inputs
  anchor,     // a kernel is built around it
};

kernel_role role_of(const operation& op);

// Elementwise and convert: an element at the same indices in and out, so an anchor's result may flow through.
bool keeps_indices(const operation& op);

// True for anchors whose result may flow through such operations inside the kernel.
bool takes_epilogue(const operation& op);

double element_cost(const operation& op);

// How often the anchor reads each element of operand `index`; 0 where the operand must lie in memory.
double operand_reads(const operation& anchor, std::size_t index);

// Contractions, attention among them, reuse each element they load in registers; their inner loops take only what keeps
// or stretches indices as operands of the epilogue: no concat, no gather, no transpose of the innermost axis.
bool is_contraction(const operation& op);
bool is_irregular(const operation& op);

// Elements of a shape, symbols taken as a small number.
double estimated_elements(const shape& type);

}  // namespace kiln
