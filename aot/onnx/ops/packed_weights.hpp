// Weights of a few bits as onnxruntime packs them into bytes, low bits first.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// Returns `bits` if it is 2, 4 or 8; refuses any other number.
std::int64_t checked_bits(std::int64_t bits);

// Returns the packed constant input i (u8; `what` is its name in messages) as elements with the given dims: u4 for 2
// and 4 bits, u8 for 8 bits.
value packed_elements(node& n, std::size_t i, std::string_view what, const std::vector<dim>& dims, std::int64_t bits);

// Unpacks `rows` times `count` numbers from the constant input i to a floating type, with the dims `dims`. Each row
// begins at a byte.
value packed_numbers(node& n, std::size_t i, std::string_view what, std::int64_t rows, std::int64_t count,
                     std::int64_t bits, element_type type, const std::vector<dim>& dims);

// Repeats each element of `parameter` `block` times along `axis`, cut to `length` elements.
value repeated_blocks(builder& b, value parameter, std::int64_t axis, std::int64_t block, std::int64_t length);

}  // namespace kiln::onnx_import
