// Tensors with a bounded dimension while a graph is imported: their size along an axis depends on data
// (bounded_dims.hpp). Such a tensor has room for the largest size; the elements past the valid ones are padding.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Returns true if a data-dependent count appears in the expression (or in a dimension of the type).
bool is_bounded(const dim& d);
bool has_bounded_dims(const shape& type);

// Returns an upper bound: replaces every count in the expression by its bound. An expression without counts is returned
// unchanged.
dim capacity_of(const import_state& state, const dim& d);
shape capacity_of(const import_state& state, const shape& type);

// Returns true if the form of the expression shows that the largest counts give the largest size.
bool grows_with_counts(const dim& d);

// Returns an upper bound of `d` without the symbols of `most`, which gives the upper bound of each; their lower bound
// is 0. Returns nullopt if none is found.
std::optional<dim> largest(const dim_facts& facts, dim d, const std::map<std::string, dim>& most);

// Returns a new symbol for a number of the module that is built: i64[1], at least `least` and at most `most`.
dim count_of(import_state& state, builder& b, value number, const dim& most, std::int64_t least = 0);

// Returns the first `count` elements of `data` along `axis`. `count` is i64[1], at least `least`, and belongs to the
// module being built.
// The result has a symbol for that dimension, and all tensors with the same count share the symbol. In the body of an
// If or Loop, only the body itself can use the symbol (bounded_dims.cpp checks this).
value shortened(node& n, value data, std::int64_t axis, value count, std::int64_t least = 0);

// Like builder::slice_from() for a length whose largest value is not that of the largest counts, such as the rest of an
// axis behind the place of a trip. The result has a count of its own.
value shortened_from(node& n, value data, std::int64_t axis, const dim& start, const dim& length, std::int64_t step);

// Replaces padding along `axis` by `fill`, which has the data's type and broadcasts to its shape. Returns data without
// padding unchanged.
value masked(builder& b, value data, std::int64_t axis, value fill);
// Replaces padding along every axis by `fill`.
value masked(builder& b, value data, value fill);

// `indices` index an axis of `size` elements; negative ones count from the end. If the size is bounded, converts them
// to indices that count from the beginning, because kernels only get the capacity of the axis.
value from_beginning(builder& b, value indices, const dim& size);

// Joins tensors along an axis whose sizes may be bounded: the valid elements follow each other without padding.
value joined(node& n, const std::vector<value>& parts, std::int64_t axis);

// Returns `data` padded to at least `length` elements along `axis`. `length` must not depend on counts. Elements past
// the valid ones have unspecified values.
value with_room(node& n, value data, std::int64_t axis, const dim& length);

// Exempts an instruction that combines elements along a bounded axis from the check in bounded_dims.cpp, because its
// handler has dealt with the padding.
void allow_padding(import_state& state, value made);

// Return the smallest and the largest value of a type as a scalar; for floats, -inf and +inf.
literal lowest(element_type type);
literal highest(element_type type);

}  // namespace kiln::onnx_import
