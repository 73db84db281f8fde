// Finds tables that a model indexes with numbers which grow with its inputs, such as a table of positions. Outside of
// the table ONNX has no answer, and a kernel gives some row, so whoever runs a language model must stop before.
#pragma once

#include "ir/program.hpp"

namespace kiln {

// Adds metadata "index_limit:EXPRESSION" = "N" for every gather along an axis of N elements whose largest index is
// EXPRESSION, a dim that depends on open dimensions. It holds where a mask consists of zeros and ones. Indices that
// this does not understand are left out. Call it before kernels are formed.
void record_index_limits(program& p);

}  // namespace kiln
