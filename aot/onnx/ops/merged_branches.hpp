// An If whose branches give different sizes that depend on data: both branches are computed, and the results of one of
// them are selected.
#pragma once

#include <vector>

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Whether a branch reads or makes a tensor whose size depends on data, so that it cannot be a module of its own.
bool needs_bounded_dims(node& n, const ::onnx::GraphProto& branch);

// Selects the outputs `yes` where the condition, a scalar, holds, and `no` elsewhere. Sizes may differ along any axis.
// Refuses outputs of different ranks or types.
std::vector<value> merged_branches(node& n, value condition, const std::vector<value>& yes,
                                   const std::vector<value>& no);

}  // namespace kiln::onnx_import
