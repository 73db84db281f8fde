// Queries of kernel formation about what a value is computed from: 8-bit tensors, irregular reads, parts of a tensor.
// Pure; any thread.
#pragma once

#include <optional>

#include "ir/instruction.hpp"

namespace kiln {

// Returns true for QuantizeLinear's conversion of floats to 8 bits.
bool is_quantization(const instruction& at);

// Returns the 8-bit tensor from which DequantizeLinear (a conversion to float and arithmetic with constants) computes
// the result of `at`. Returns null if there is none.
value quantized_source(const instruction& at);

// Returns true if v is computed from `source` element by element in at most `operations`, as x * sigmoid(x) is. Counts
// `operations` down.
bool comes_of(value v, value source, int& operations);

// Returns true if the value is an irregular read, or is computed from one element by element: then one kernel writes
// the result.
bool reads_irregularly(const instruction& at);

// Returns the value of which v is a part, if the elements of its innermost axis are contiguous.
std::optional<value> viewed(value v);

}  // namespace kiln
