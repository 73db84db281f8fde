// GPU graphs, built from nodes or by stream capture (runtime/graph/device_graph.hpp). A handle is owned once the call
// that made it has succeeded. The owner of a capture ends it in its destructor, whatever happens during the capture.
#pragma once

#include <vector>

#include "runtime/gpu/graph_nodes.hpp"
#include "runtime/gpu/handles.hpp"

namespace kiln::gpu {

class raw_graph {
 public:
  raw_graph(state& of, void* owned) : state_(&of), native_(owned) {}
  raw_graph(raw_graph&& other) noexcept : state_(other.state_), native_(std::exchange(other.native_, nullptr)) {}
  raw_graph& operator=(raw_graph&& other) noexcept {
    std::swap(state_, other.state_), std::swap(native_, other.native_);
    return *this;
  }
  ~raw_graph();
  void* get() const { return native_; }

 private:
  state* state_;
  void* native_;
};

raw_graph make_raw_graph(state& of);

// Captures the work given to a private stream between construction and end(). The captured work is not executed.
class stream_capture {
 public:
  explicit stream_capture(state& of);
  ~stream_capture();
  stream_capture(const stream_capture&) = delete;
  stream_capture& operator=(const stream_capture&) = delete;
  void* stream() const { return stream_.get(); }
  // The node of the last captured operation, or null if there is more than one or the driver cannot tell.
  void* last_node() const;
  raw_graph end();

 private:
  state& state_;
  raw_stream stream_;
  bool open_ = false;
};

// The common part of both kinds of graph: instantiation, patching and launches, after the graph is built.
class gpu_graph : public device_graph {
 public:
  explicit gpu_graph(state& of) : state_(of) {}
  ~gpu_graph() override;
  void instantiate() override;
  bool patch(std::uint32_t node, const graph_node& with) override;
  bool update(device_graph& from) override;
  void launch(device_stream& stream) override;

 protected:
  virtual void* native() = 0;  // the graph itself; available once it is finished
  bool patch_call(void* node, const graph_node& with);
  bool accepted(int status);  // throws if the device is lost
  state& state_;
  std::vector<void*> nodes_;  // null for a node that cannot be patched
  void* exec_ = nullptr;
  std::size_t bytes_ = 0;  // estimated, of exec_
};

class node_graph final : public gpu_graph {
 public:
  explicit node_graph(state& of) : gpu_graph(of), graph_(make_raw_graph(of)) {}
  void add(const graph_node& node, std::span<const std::uint32_t> after) override;
  void finish() override {}

 private:
  void* native() override { return graph_.get(); }
  // Adds a kernel with a programmatic dependency on the launch `after`: the kernel waits for that launch itself.
  // Returns false and adds nothing if the driver does not support it.
  bool add_early(const graph_node& node, std::uint32_t after);
  raw_graph graph_;
  std::vector<bool> launches_;  // per node: whether it is a launch
  std::vector<void*> after_;    // dependencies of the node being added
};

class captured_graph final : public gpu_graph {
 public:
  explicit captured_graph(state& of);
  void add(const graph_node& node, std::span<const std::uint32_t> after) override;
  void finish() override;

 private:
  void* native() override { return graph_.get(); }
  std::unique_ptr<stream_capture> capture_;  // while the graph is being built
  raw_graph graph_;
};

}  // namespace kiln::gpu
