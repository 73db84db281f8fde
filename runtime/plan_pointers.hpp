// The moving part of one context: where every buffer of its plan is now, and steps of the plan as a device takes them.
// Addresses of its entries are parameters of launches, so it is moved (its tables stay where they are) and never
// copied. Used by one thread at a time.
#pragma once

#include <vector>

#include "runtime/graph/device_graph.hpp"
#include "runtime/plan.hpp"

namespace kiln {

class plan_pointers {
 public:
  plan_pointers(const plan& of, device& target, std::byte* arena, std::byte* zeroed);
  plan_pointers(plan_pointers&&) noexcept = default;
  plan_pointers& operator=(plan_pointers&&) noexcept = default;

  void*& operator[](buffer_id id) { return table_[id]; }
  void* operator[](buffer_id id) const { return table_[id]; }
  std::uint32_t& counter(std::uint32_t index) { return counters_[index]; }
  std::uint32_t counter(std::uint32_t index) const { return counters_[index]; }
  // What the pointer of an empty tensor is: something that may be passed on, never followed.
  static void* nothing();

  // Valid until the next call. Tensor maps whose pointer has changed are encoded again; throws what device::encode
  // does.
  launch_request launch(const launch_step& step);
  foreign_work call(const call_step& step);
  // A step that becomes a node of a graph: launch, copy, count or call.
  graph_node node(const plan_step& step);

 private:
  const plan* plan_;
  device* device_;
  bool host_;
  std::vector<void*> table_;              // per plan buffer
  std::vector<void*> values_;             // of the arguments of the launch (host) or call being made
  std::vector<void*> arguments_;          // GPU: per plan argument, where its value is
  std::vector<encoded_tensor_map> maps_;  // per plan tensor map
  std::vector<const void*> mapped_;       // per plan tensor map: the address it was made for
  std::vector<std::uint32_t> counters_;
};

}  // namespace kiln
