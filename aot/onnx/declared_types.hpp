// Exporters write types beside values (value_info, outputs), and some are wrong. Kiln infers all types itself and does
// not use these; it reports what differs.
#pragma once

#include "aot/onnx/graph.hpp"

namespace kiln::onnx_import {

// Logs (with --verbose) each declared type of the graph that contradicts the imported value.
void report_wrong_declarations(const scope& imported, const ::onnx::GraphProto& graph);

}  // namespace kiln::onnx_import
