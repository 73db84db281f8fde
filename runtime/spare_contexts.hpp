// What ended contexts, and the tensors of their runs, leave for later ones on a GPU: making and freeing memory, streams
// and graphs takes the driver longer than filling a plan in. All plans of one open_plans share one (plan::spares). Any
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/graph/device_graph.hpp"
#include "runtime/plan.hpp"

namespace kiln {

// A graph that was launched for another plan, and what its nodes have in common with those of a plan that can take it.
struct spare_graph {
  struct node {
    std::size_t kind = 0;  // index of the alternative of plan_work
    const void* function = nullptr;
    std::int64_t block = 0, lds_bytes = 0;
    bool waits = false;
    friend bool operator==(const node&, const node&) = default;
  };
  std::shared_ptr<const kernel_library> library = {};  // of its kernels; freed after the graph
  std::uint32_t block = 0;                             // of the plan
  std::vector<node> nodes = {};
  std::unique_ptr<device_graph> graph = {};
};

// Nothing of it is in use on the device.
struct spare_context {
  device_memory arena, zeroed;
  bool clean = false;  // whether `zeroed` holds zeros
  std::unique_ptr<device_stream> stream, own_stream;
};

class spare_contexts {
 public:
  // Makes streams for the first contexts, for which no other has ended.
  void add_streams(std::size_t count, device& target);
  // Returns one without memory, and without a stream if none is left, if no context has ended.
  spare_context take();
  // Takes out the graph with the nodes of `like`; null if there is none.
  std::unique_ptr<device_graph> take_graph(const spare_graph& like);
  bool has_graphs() const;
  // Takes out a block for tensors of so many bytes, if there is one; otherwise makes it.
  device_memory take_tensors(std::size_t bytes, device& target);
  // Keep a few; free the others. Sizes whose kernels have other versions have other graphs, so more of these are kept.
  void give_back(spare_context ended) noexcept;
  void give_back(std::vector<spare_graph> ended) noexcept;
  void give_back(device_memory tensors) noexcept;

 private:
  mutable std::mutex mutex_;
  std::vector<spare_context> free_;
  std::vector<std::unique_ptr<device_stream>> streams_;
  std::vector<spare_graph> graphs_;  // the one that ended first, first
  std::vector<device_memory> tensors_;
};

// Makes `memory`, which is not in use, one of at least `bytes`, and not of much more. Returns whether it is the same as
// before. `for_later`: it will go to other sizes; then small blocks are made larger than they need to be.
bool fit(device_memory& memory, std::size_t bytes, device& target, bool for_later);

}  // namespace kiln
