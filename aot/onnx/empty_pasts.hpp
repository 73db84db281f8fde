// Open dimensions that may be 0: the first step of a decoder has no past keys and values.
#pragma once

#include <set>
#include <string>

#include "aot/onnx/model_file.hpp"

namespace kiln::onnx_import {

// Returns the names of the dimensions along which the graph appends to its inputs: as the past of an attention, or with
// a Concat of an input of at least three axes and one computed tensor.
std::set<std::string> growing_dimensions(const ::onnx::GraphProto& graph);

}  // namespace kiln::onnx_import
