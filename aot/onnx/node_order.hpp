// Sorts a graph's nodes topologically. ONNX requires that producers come before their users, but some converters append
// nodes at the end, and onnxruntime accepts such models.
#pragma once

#include <onnx/onnx_pb.h>

namespace kiln::onnx_import {

// Moves nodes so that each comes after the producers of its inputs. The order is stable. Nodes on a cycle cannot be
// sorted; importing one of them fails.
void order_nodes(::onnx::GraphProto& graph);

}  // namespace kiln::onnx_import
