// Tensors with a bounded dimension while a graph is imported: their size along an axis depends on data
// (bounded_dims.hpp). Such a tensor has room for the largest size; the elements past the valid ones are padding.
#pragma once

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Whether a count appears in the expression.
bool is_bounded(const dim& d);
bool has_bounded_dims(const shape& type);

// The largest value of the expression: every count is replaced by its bound. Without counts it is the expression.
dim capacity_of(const import_state& state, const dim& d);
shape capacity_of(const import_state& state, const shape& type);

// Returns the first `count` elements of `data` along `axis`. `count` is i64[1] and belongs to the module being built.
// The result has a symbol for that dimension, and all tensors with the same count share the symbol. Refused in bodies
// of If and Loop.
value shortened(node& n, value data, std::int64_t axis, value count);

// Replaces padding along `axis` by `fill`, which has the data's type and broadcasts to it. Data without padding is
// returned as it is.
value masked(builder& b, value data, std::int64_t axis, value fill);
// The same for every axis.
value masked(builder& b, value data, value fill);

// Indices along an axis of `size` elements; negative ones count from the end. Makes them count from the beginning if
// the size is bounded, because kernels know only the largest size.
value from_beginning(builder& b, value indices, const dim& size);

// Joins tensors along an axis whose sizes may be bounded: the valid elements follow each other without padding.
value joined(node& n, const std::vector<value>& parts, std::int64_t axis);

// `data` with at least `length` elements along `axis`; `length` has no counts. Elements past the valid ones may have
// any value.
value with_room(node& n, value data, std::int64_t axis, const dim& length);

// Allows an instruction that combines elements along a bounded axis, because its handler has dealt with the padding.
void allow_padding(import_state& state, value made);

// The smallest and the largest value of a type, infinite for floats; a scalar.
literal lowest(element_type type);
literal highest(element_type type);

}  // namespace kiln::onnx_import
