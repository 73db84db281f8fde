// A graph of device work (kernel launches, copies, fills) that is launched as a whole. device::make_graph makes it;
// add() and finish() build it; instantiate() makes it ready to launch. The device must outlive the graph. Wait for the
// stream of the last launch before you destroy the graph. Used by one thread at a time. Errors are thrown as
// kiln::error; the destructor frees what was built so far and ends a capture that is in progress.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/device.hpp"

namespace kiln {

// How a graph is built. Both ways take the same nodes and launch the same work.
enum class graph_maker : std::uint8_t {
  nodes,    // each node is added explicitly, with its own dependencies; a foreign call is captured and becomes a child
            // graph node
  capture,  // all work is enqueued in order on a stream that is being captured
};

// A call into foreign code that enqueues work: see foreign_call in plan.hpp.
struct foreign_work {
  void (*enqueue)(void* data, void* native_stream, std::span<void* const> inputs,
                  std::span<void* const> outputs) = nullptr;
  void* data = nullptr;
  std::span<void* const> inputs, outputs;
};

struct graph_node {
  enum class kind : std::uint8_t { launch, copy, word, call };
  kind what = kind::launch;
  launch_request launch = {};  // its stream is ignored
  void* to = nullptr;          // copy, word
  const void* from = nullptr;  // copy
  std::size_t bytes = 0;       // copy
  std::uint32_t value = 0;     // word: the 4-byte value to write
  foreign_work call = {};
};

// Nodes are numbered in the order of add(). Each function reads what a graph_node points to before it returns.
class device_graph {
 public:
  virtual ~device_graph() = default;
  // `after`: the earlier nodes that must finish before this one starts.
  virtual void add(const graph_node& node, std::span<const std::uint32_t> after) = 0;
  virtual void finish() = 0;       // no more nodes
  virtual void instantiate() = 0;  // after finish()
  // Gives a node other pointers and values (same kind of node) from the next launch on. Returns false if the driver
  // refuses; the graph is then unchanged.
  virtual bool patch(std::uint32_t node, const graph_node& with) = 0;
  // Takes the values of another finished graph with the same nodes, from the next launch on. Returns false if the
  // driver refuses; this graph must then not be launched again.
  virtual bool update(device_graph& from) = 0;
  virtual void launch(device_stream& stream) = 0;
};

}  // namespace kiln
