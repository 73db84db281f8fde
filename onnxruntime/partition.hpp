// Which nodes of a graph Kiln takes, in parts that are as large as possible.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onnxruntime/api.hpp"
#include "onnxruntime/compiler.hpp"

namespace kiln::ort {

// Why the compiler does not know the node, or something in its bodies; "" if it knows it.
std::string reason_against(const OrtGraph* graph, const OrtNode* node, const compiler& with);

// A node of the part whose bodies read a value from outside of the part that no node of the part takes as an input;
// null if there is none. ONNX Runtime before 1.27 gives the fused node no such values.
const OrtNode* reader_without_input(const std::vector<const OrtNode*>& part);

// Whether ONNX Runtime has given parts of bodies of these nodes to the provider already. It does so with bodies that it
// does not show as such (1.23).
bool has_part_in_body(const std::vector<const OrtNode*>& nodes, const std::string& provider);

// The nodes that are `taken`, in parts without a path that leaves a part and comes back to it. Each part's nodes are in
// the order of the graph.
std::vector<std::vector<const OrtNode*>> parts_of(const OrtGraph* graph,
                                                  const std::function<bool(const OrtNode*)>& taken);

}  // namespace kiln::ort
