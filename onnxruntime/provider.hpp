// Kiln as an execution provider of one ONNX Runtime session.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnxruntime/compiler.hpp"
#include "onnxruntime/part.hpp"

namespace kiln::ort {

class provider : public OrtEp {
 public:
  provider(const OrtSessionOptions* session, const OrtLogger* logger);

 private:
  OrtStatus* take_nodes(const OrtGraph* graph, OrtEpGraphSupportInfo* to) noexcept;
  OrtStatus* open_parts(const OrtNode** fused, std::size_t count, OrtNodeComputeInfo** to) noexcept;
  // Compiles a part. Returns why it cannot, or "".
  std::string compile(const OrtGraph* graph, const std::vector<const OrtNode*>& nodes);
  void tell(OrtLoggingLevel level, const std::string& text) const;

  const OrtLogger* logger_;
  provider_options options_;
  compiler compiler_;
  // By the names of what the part gives: a fused node has the same.
  std::map<std::vector<std::string>, compiled_part> compiled_;
};

}  // namespace kiln::ort
