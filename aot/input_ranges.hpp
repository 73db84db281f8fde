// Which values an integer input may take: found while operators can still be seen, kept in the program's metadata, so
// that random inputs made for a run later stay in range.
#pragma once

#include "ir/program.hpp"

namespace kiln {

// Adds metadata "range:INPUT" = "N" (values 0..N-1 are fine) for every integer input of the main module that indexes an
// axis of static extent, directly or through operations that only move elements. Call before kernels are formed.
void record_input_ranges(program& p);

}  // namespace kiln
