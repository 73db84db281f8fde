// Finds tables that a model indexes with numbers that grow with its inputs, such as a table of positions. ONNX does not
// define an index outside of the table, and our kernels clamp it. A program that generates text must stop before that.
#pragma once

#include "ir/program.hpp"

namespace kiln {

// Adds metadata "index_limit:EXPRESSION" = "N" for every gather along an axis of N elements whose largest index is
// EXPRESSION, a dim that depends on open dimensions. It holds where a mask consists of zeros and ones. Indices that
// this does not understand are left out. Call it before kernels are formed.
void record_index_limits(program& p);

}  // namespace kiln
