// Bounds of numbers that the body of a Loop takes from data: a number that is an element of an outer tensor is at most
// the largest element of it, in whichever trip.
#pragma once

#include <optional>

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

// The nearest enclosing scope that builds another module; null in the main graph.
scope* scope_around_module(const node& n);

// Returns a scalar of the main module that is an upper bound of all elements of `v`, a value of a body in the main
// graph, in all trips; it has the type of v. Returns nullopt if v depends on something else than outer tensors and
// their places, if an operation on the way does not grow with its inputs, or if the body is that of an inner graph.
std::optional<value> most_in_all_trips(const node& n, value v);

}  // namespace kiln::onnx_import
