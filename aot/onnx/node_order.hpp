// The order of a graph's nodes. ONNX demands that producers come before their users, but converters append nodes, and
// onnxruntime accepts that.
#pragma once

#include <onnx/onnx_pb.h>

namespace kiln::onnx_import {

// Moves nodes so that each comes after the producers of its inputs. Nodes that need no move keep their order. A cycle
// has no such order: importing one of its nodes fails.
void order_nodes(::onnx::GraphProto& graph);

}  // namespace kiln::onnx_import
