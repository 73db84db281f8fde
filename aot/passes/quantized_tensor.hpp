// Matches tensors of 8-bit integers or 8-bit floats behind the arithmetic of DequantizeLinear as the importer writes
// it: (q − zero) × scale, optionally followed by movement (reshape, transpose) and conversions between float types.
// Without a scale it matches the form of MatMulInteger and ConvInteger: q − zero in i32, or q itself.
#pragma once

#include <optional>
#include <vector>

#include "aot/passes/rewrite.hpp"

namespace kiln {

struct quantized_tensor {
  value elements = {};  // i8, u8, or a float of 8 bits with a mantissa
  // The zero point is known_zero + zero. `zero` may be null. `zero` and `scale` have, or are broadcast to, the dims of
  // the elements.
  double known_zero = 0;
  value zero = {};
  value scale = {};  // null: 1
  // Movement operations from the elements to the tensor.
  std::vector<instruction*> movement = {};
};

std::optional<quantized_tensor> find_quantized(value v);

// Applies the movement of `tensor` to other elements of the same dims.
value moved(rewriter& write, const quantized_tensor& tensor, value elements);

// Returns the axis of the elements that becomes `axis` of the tensor, or nullopt if a reshape merges or splits it.
std::optional<std::size_t> axis_before_movement(const quantized_tensor& tensor, std::size_t axis);

// Returns the scalar (dims {}) that v is a broadcast of, or null if v is not made from a single element.
value single_element(rewriter& write, value v);

// Returns the number in v if v is a constant passed through broadcasts, reshapes and conversions only.
std::optional<double> known_number(value v);

}  // namespace kiln
