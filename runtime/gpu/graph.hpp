// Graphs of a GPU by either maker (runtime/graph/device_graph.hpp). Every handle is owned once the call that made it
// has succeeded; a capture is ended by its owner, whatever happens while it is open.
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

// What a stream of its own is given between the making of this object and end(), which is not run.
class stream_capture {
 public:
  explicit stream_capture(state& of);
  ~stream_capture();
  stream_capture(const stream_capture&) = delete;
  stream_capture& operator=(const stream_capture&) = delete;
  void* stream() const { return stream_.get(); }
  // What was given last as a node, where it is one alone and the driver can say.
  void* last_node() const;
  raw_graph end();

 private:
  state& state_;
  raw_stream stream_;
  bool open_ = false;
};

// What both kinds do once they are built.
class gpu_graph : public device_graph {
 public:
  explicit gpu_graph(state& of) : state_(of) {}
  ~gpu_graph() override;
  void instantiate() override;
  bool patch(std::uint32_t node, const graph_node& with) override;
  bool update(device_graph& from) override;
  void launch(device_stream& stream) override;

 protected:
  virtual void* native() = 0;  // once finished
  bool patch_call(void* node, const graph_node& with);
  bool accepted(int status);  // throws where the device is lost
  state& state_;
  std::vector<void*> nodes_;  // null where a node cannot be patched
  void* exec_ = nullptr;
};

class node_graph final : public gpu_graph {
 public:
  explicit node_graph(state& of) : gpu_graph(of), graph_(make_raw_graph(of)) {}
  void add(const graph_node& node, std::span<const std::uint32_t> after) override;
  void finish() override {}

 private:
  void* native() override { return graph_.get(); }
  // Adds a launch that waits by itself behind another launch, which it need not see the end of. False where the driver
  // does not do that; nothing is added.
  bool add_early(const graph_node& node, std::uint32_t after);
  raw_graph graph_;
  std::vector<bool> launches_;  // per node
  std::vector<void*> after_;    // of the node being added
};

class captured_graph final : public gpu_graph {
 public:
  explicit captured_graph(state& of);
  void add(const graph_node& node, std::span<const std::uint32_t> after) override;
  void finish() override;

 private:
  void* native() override { return graph_.get(); }
  std::unique_ptr<stream_capture> capture_;  // while it is built
  raw_graph graph_;
};

}  // namespace kiln::gpu
