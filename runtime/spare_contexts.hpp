// What ended contexts leave for later ones on a GPU: making and freeing memory, streams and graphs takes the driver
// longer than filling a plan in. All plans of one open_plans share one (plan::spares). Any thread.
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
  std::uint32_t block = 0;  // of the plan
  std::vector<node> nodes;
  std::unique_ptr<device_graph> graph;
};

// Nothing of it is in use on the device.
struct spare_context {
  std::shared_ptr<const kernel_library> library;  // of the graphs' kernels
  device_memory arena, zeroed;
  bool clean = false;  // whether `zeroed` holds zeros
  std::unique_ptr<device_stream> stream, own_stream;
  std::vector<spare_graph> graphs;  // freed before the library
};

class spare_contexts {
 public:
  // Returns one for a plan with this library; without a stream if there is none.
  spare_context take(const std::shared_ptr<const kernel_library>& library);
  // Keeps a few; frees the others.
  void give_back(spare_context ended) noexcept;

 private:
  std::mutex mutex_;
  std::vector<spare_context> free_;
};

// Makes `memory`, which is not in use, one of at least `bytes`, and not of much more. Returns whether it is the same as
// before.
bool fit(device_memory& memory, std::size_t bytes, device& target);

}  // namespace kiln
