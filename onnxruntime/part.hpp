// A part of a graph that Kiln runs: a session for its file, and programs and contexts for the shapes that it meets. Any
// thread may run it; runs at the same time have contexts of their own.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "onnxruntime/api.hpp"
#include "onnxruntime/gpu.hpp"
#include "onnxruntime/kiln_library.hpp"
#include "onnxruntime/options.hpp"

namespace kiln::ort {

// Which `.kiln` file a part is, and what its inputs and outputs are called in the graph, in the order of the model.
struct compiled_part {
  std::string file;
  std::vector<std::string> inputs, outputs;
};

// What a fused node takes or gives, and the type of its elements; UNDEFINED if it is no tensor.
struct node_value {
  std::string name;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
};

class part {
 public:
  // `on`: the GPU in whose memory the tensors are; null: they are in the host's. `node_inputs`, `node_outputs`: what
  // the fused node takes and gives, in its order. Throws std::runtime_error, also where the file has other types of
  // elements than the node: a node EPContext may come with any file.
  part(const compiled_part& what, const provider_options& options, std::shared_ptr<gpu> on,
       const std::vector<node_value>& node_inputs, const std::vector<node_value>& node_outputs);

  void run(OrtKernelContext* context);

 private:
  struct given {
    std::vector<std::int64_t> dims;
    const void* data = nullptr;
    std::vector<std::byte> sizes;  // a copy on the host, if elements are sizes and the data is on a GPU
  };
  // A program for some shapes, and its contexts that nobody uses now.
  struct program {
    explicit program(kiln_program* p) : made(p, library().program_close) {}
    std::unique_ptr<kiln_program, void (*)(kiln_program*)> made;
    std::vector<kiln_context*> free;
    ~program();
  };
  struct known_shapes {
    std::vector<std::vector<std::int64_t>> dims;
    std::shared_ptr<program> made;
  };
  std::vector<given> read_inputs(OrtKernelContext* context) const;
  std::shared_ptr<program> program_for(const std::vector<given>& inputs);
  void run(program& p, kiln_context* with, const std::vector<given>& inputs, OrtKernelContext* to);
  void run_bounded(program& p, kiln_context* with, const std::vector<const void*>& from, OrtKernelContext* to);
  void give_bounded(program& p, OrtKernelContext* to, const std::vector<std::vector<std::byte>>& whole);
  void* memory_of(OrtValue* value) const;  // not for empty tensors
  void start(kiln_context* with, const std::vector<const void*>& from, const std::vector<void*>& results);

  kiln_graph_policy graph_;
  std::optional<void*> stream_;
  std::shared_ptr<gpu> gpu_;
  bool on_host_;  // kernels run there
  std::unique_ptr<kiln_session, void (*)(kiln_session*)> session_;
  // Place among the node's inputs of each input of the model, and of its outputs.
  std::vector<std::size_t> inputs_, outputs_;
  std::vector<bool> sizes_;        // inputs of the model whose elements are sizes
  bool sizes_are_data_ = false;    // some are
  std::mutex mutex_;               // guards what follows
  std::list<known_shapes> known_;  // the most recently used first
};

}  // namespace kiln::ort
