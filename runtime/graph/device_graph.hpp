// Work of a device as a graph that is launched whole: launches, copies and fills with an order between them. Made by
// device::make_graph, built by add() and finish(), launched after instantiate(). The device must outlive it; a launch
// may still be running when it goes only if its stream is waited for first. Used by one thread at a time. Errors are
// thrown as kiln::error; what was made until then goes with the object, and a capture ends with it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/device.hpp"

namespace kiln {

// How a graph comes to be. Both take the same nodes and launch the same work.
enum class graph_maker : std::uint8_t {
  nodes,  // every node by a call of its own, with the order that it asks for; work that is not ours becomes a captured
          // graph in one node
  capture,  // everything goes to a stream that is captured, one after the other
};

// Work that is not ours: see plan.hpp, foreign_call.
struct foreign_work {
  void (*enqueue)(void* data, void* native_stream, std::span<void* const> inputs,
                  std::span<void* const> outputs) = nullptr;
  void* data = nullptr;
  std::span<void* const> inputs, outputs;
};

struct graph_node {
  enum class kind : std::uint8_t { launch, copy, word, call };
  kind what = kind::launch;
  launch_request launch = {};  // whose stream is not looked at
  void* to = nullptr;          // copy, word
  const void* from = nullptr;  // copy
  std::size_t bytes = 0;       // copy
  std::uint32_t value = 0;     // word: what is written, 4 bytes
  foreign_work call = {};
};

// Nodes are numbered in the order of add(). Everything that a node points to is read before a function returns.
class device_graph {
 public:
  virtual ~device_graph() = default;
  // `after`: earlier nodes that must have ended.
  virtual void add(const graph_node& node, std::span<const std::uint32_t> after) = 0;
  virtual void finish() = 0;       // no more nodes
  virtual void instantiate() = 0;  // after finish()
  // Other pointers and values for a node of the same kind, from the next launch on. False where the driver refuses; the
  // graph is as it was.
  virtual bool patch(std::uint32_t node, const graph_node& with) = 0;
  // The values of another finished graph of the same nodes, from the next launch on. False where the driver refuses:
  // then this graph is not to be launched any more.
  virtual bool update(device_graph& from) = 0;
  virtual void launch(device_stream& stream) = 0;
};

}  // namespace kiln
