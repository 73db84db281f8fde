// EPContext nodes: a model whose parts are compiled already. ONNX Runtime writes one if a session has
// `ep.context_enable`; a node holds a portable `.kiln` file, or says which file beside the model it is, and any machine
// opens it.
#pragma once

#include <string>

#include "onnxruntime/api.hpp"
#include "onnxruntime/compiler.hpp"
#include "onnxruntime/part.hpp"

namespace kiln::ort {

// The session's entries `ep.context_enable`, `ep.context_embed_mode` and `ep.context_file_path`.
struct context_options {
  bool enabled = false, embedded = false;
  std::string model;  // the file to be written; empty: beside the source
};
context_options read_context_options(const OrtSessionOptions* session);

bool is_own_context(const OrtNode* node);

// The node that stands for a fused one in the model to be written; ONNX Runtime owns it. Writes the `.kiln` file beside
// that model unless it is embedded.
OrtNode* make_context_node(const OrtGraph* graph, const OrtNode* fused, const compiled_part& what,
                           const context_options& options);

// Reads an EPContext node of ours. Writes an embedded file into the compiler's folder.
compiled_part read_context_node(const OrtGraph* graph, const OrtNode* node, const compiler& keeps);

}  // namespace kiln::ort
