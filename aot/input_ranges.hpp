// Finds out which values an integer input may take. This runs while ONNX-level operations such as gather are still
// visible. The ranges are kept in the program's metadata, so that random inputs generated for a run stay in range.
#pragma once

#include "ir/program.hpp"

namespace kiln {

// Adds metadata "range:INPUT" = "N" (values 0..N-1 are valid) for every integer input of the main module that indexes
// an axis of static extent, directly or through operations that only move elements. Call it before kernels are formed.
void record_input_ranges(program& p);

}  // namespace kiln
