// Finds tensors of 8-bit integers behind the arithmetic of DequantizeLinear: (q − zero) × scale, as the importer writes
// it, perhaps followed by movement (reshape, transpose) and conversions between float types. Without a scale the form
// is that of MatMulInteger and ConvInteger: q − zero in i32, or q itself.
#pragma once

#include <optional>
#include <vector>

#include "aot/passes/rewrite.hpp"

namespace kiln {

struct quantized_tensor {
  value elements = {};  // i8 or u8
  // The zero point is known_zero + zero. `zero` may be null; like the scale it has, or is broadcast to, the dims of the
  // elements.
  double known_zero = 0;
  value zero = {};
  value scale = {};                         // null: 1
  std::vector<instruction*> movement = {};  // from the elements to the tensor
};

std::optional<quantized_tensor> find_quantized(value v);

// The movement of `tensor`, applied to other elements of the same dims.
value moved(rewriter& write, const quantized_tensor& tensor, value elements);

// The axis of the elements that becomes `axis` of the tensor. None if a reshape merges or splits it.
std::optional<std::size_t> axis_before_movement(const quantized_tensor& tensor, std::size_t axis);

// The one element that all elements of v are equal to, with dims {}. Null if v does not come from one element.
value single_element(rewriter& write, value v);

// The only number in v, if it is computed from a constant by broadcasts, reshapes and conversions.
std::optional<double> known_number(value v);

}  // namespace kiln
