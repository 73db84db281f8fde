// Kiln as an execution provider of one ONNX Runtime session.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onnxruntime/compiler.hpp"
#include "onnxruntime/context_node.hpp"
#include "onnxruntime/gpu.hpp"
#include "onnxruntime/part.hpp"

namespace kiln::ort {

class provider : public OrtEp {
 public:
  // `on`: the GPU in whose memory the tensors are; null: they are in the host's.
  provider(const OrtSessionOptions* session, const OrtLogger* logger, std::shared_ptr<gpu> on);

 private:
  OrtStatus* take_nodes(const OrtGraph* graph, OrtEpGraphSupportInfo* to) noexcept;
  // `contexts` gets the nodes for a model of compiled parts, if the session asks for one.
  OrtStatus* open_parts(const OrtGraph** graphs, const OrtNode** fused, std::size_t count, OrtNodeComputeInfo** to,
                        OrtNode** contexts) noexcept;
  // Compiles a part. Returns why it cannot, or "".
  std::string compile(const OrtGraph* graph, const std::vector<const OrtNode*>& nodes);
  void tell(OrtLoggingLevel level, const std::string& text) const;

  const char* name() const { return gpu_ ? gpu_provider_name : provider_name; }

  const OrtLogger* logger_;
  std::shared_ptr<gpu> gpu_;
  provider_options options_;
  context_options contexts_;
  compiler compiler_;
  // By the names of what the part gives: a fused node has the same.
  std::map<std::vector<std::string>, compiled_part> compiled_;
};

}  // namespace kiln::ort
