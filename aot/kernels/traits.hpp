// Properties of operations that kernel formation uses: which operations can be inlined into a kernel's loops, which are
// the anchor of a kernel, how much one element costs, and how often an anchor reads each element of an operand. Costs
// are relative to one addition and do not depend on the target.
#pragma once

#include "ir/instruction.hpp"

namespace kiln {

enum class kernel_role : std::uint8_t {
  structure,  // parameter, constant, if, loop, code_object: never inside a kernel, except for scalar constants
  inlinable,  // computes each element from a few elements of its inputs
  anchor,     // a kernel is built around it
};

kernel_role role_of(const operation& op);

// Returns true if the kernel of this anchor can apply operations that keep indices (ir/ops/elementwise.hpp) to its
// result.
bool takes_epilogue(const operation& op);

double element_cost(const operation& op);
// For how many operations of a kernel the instruction counts. Each operand of a concat is code of its own.
std::size_t operations_of(const instruction& at);

// Returns true if an operand that the anchor could compute itself is better in memory: an attention with many queries
// computes its keys again for each tile of queries, and copies of tiles by the hardware need operands in memory.
bool prefers_memory(const instruction& anchor, std::size_t index);
// Returns true for an attention with at most a few queries.
bool has_few_queries(const instruction& anchor);
// How often the anchor reads each element of operand `index`; 0 if the operand must be in memory.
double operand_reads(const operation& anchor, std::size_t index);

// How many elements of operand `k` are read to compute `count` elements of an inlinable instruction.
double reads_of(const instruction& at, std::size_t k, double count);

// Operands of an anchor must usually be in memory. Returns true if operand `index` may also be a slice of a tensor in
// memory, provided that the innermost axis stays contiguous. `whole` is the operation that computes this tensor.
bool reads_views(const operation& anchor, std::size_t index, const operation& whole);

// Returns true if operand `index` of an anchor over images may be a slice of the channels of an image in memory. Loads
// must stay as aligned as those of a dense copy, and a pixel's part must be worth a transaction of memory.
bool reads_channels(const instruction& anchor, std::size_t index);

// True for contractions, including attention. They reuse each loaded element in registers. Their inner loops only
// support epilogue operands that keep or broadcast indices: no concat, no gather, no transpose of the innermost axis.
bool is_contraction(const operation& op);
bool is_irregular(const operation& op);

// Returns true for a gather of a single row. It costs its readers no more than a slice does: its index is the same for
// all elements.
bool reads_one_row(const instruction& at);

// Number of elements of a shape. Symbolic dims are assumed to be small.
double estimated_elements(const shape& type);

}  // namespace kiln
