// Inputs whose elements are given at import (`--value`), and the inputs that a value depends on.
#pragma once

#include <string>
#include <vector>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Returns the constant that replaces an input. An open dimension of a vector is set to the number of given elements.
// Throws error{usage} if the elements do not fit the input's type or dims.
value given_input(builder& b, const std::string& name, const shape& declared, const std::vector<std::string>& elements);

// Throws error{usage} if a value is given for an input that the graph does not have.
void check_given_inputs(const import_options& options, const ::onnx::GraphProto& graph);

// The parameters of the module that v depends on, in order of first use.
std::vector<std::string> inputs_behind(value v);

// Returns advice for the user on how to make v known at import: "give input 'axes' with --value axes=..., or ...".
std::string advice_to_know(value v);

}  // namespace kiln::onnx_import
