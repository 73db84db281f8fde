// An If whose branches return different data-dependent sizes. Both branches are computed, and the condition selects the
// results of one.
#pragma once

#include <vector>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Returns true if a branch reads or creates a tensor whose size depends on data. Such a branch cannot be a module.
bool needs_bounded_dims(node& n, const ::onnx::GraphProto& branch);

// Returns the outputs `yes` if the scalar condition is true, otherwise `no`. Sizes may differ along any axis. Refuses
// outputs of different ranks or types.
std::vector<value> merged_branches(node& n, value condition, const std::vector<value>& yes,
                                   const std::vector<value>& no);

}  // namespace kiln::onnx_import
