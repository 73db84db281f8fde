// The mutable part of one context: the current address of every buffer of its plan, and the conversion of plan steps to
// the device's requests. Launch parameters point to the entries of its tables. Moving keeps the tables in place, so
// this class can be moved but not copied. Used by one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "runtime/graph/device_graph.hpp"
#include "runtime/plan.hpp"

namespace kiln {

class plan_pointers {
 public:
  plan_pointers(const plan& of, device& target, std::byte* arena, std::byte* zeroed);
  plan_pointers(plan_pointers&&) noexcept = default;
  plan_pointers& operator=(plan_pointers&&) noexcept = default;

  // Goes on with an arena at another address, between two runs. For the host only: graphs and launch parameters of a
  // GPU keep addresses.
  void move_arena(std::byte* arena);

  void*& operator[](buffer_id id) { return table_[id]; }
  void* operator[](buffer_id id) const { return table_[id]; }
  std::uint32_t& counter(std::uint32_t index) { return counters_[index]; }
  std::uint32_t counter(std::uint32_t index) const { return counters_[index]; }
  // A placeholder address for empty tensors. It may be passed on but must not be dereferenced.
  static void* nothing();

  // The result is valid until the next call. Re-encodes tensor maps whose pointer or sizes have changed; throws what
  // device::encode throws.
  launch_request launch(const launch_step& step);
  // The same for steps that run side by side (plan_step::together).
  std::span<const launch_request> launches(std::span<const plan_step> steps);
  foreign_work call(const call_step& step);
  graph_node copy(const copy_step& step) const;
  // Converts a launch, copy, count or call step to a graph node.
  graph_node node(const plan_step& step);

 private:
  launch_request launch_blocks(const launch_step& step);
  const plan* plan_;
  device* device_;
  bool host_;
  std::byte* arena_;
  std::vector<void*> table_;  // per plan buffer
  // Arguments of the current launch (for the host, of all blocks or all launches side by side) or call.
  std::vector<void*> values_;
  std::vector<launch_request> requests_;  // host: the current launches side by side
  std::vector<void*> arguments_;          // GPU: address of each plan argument's value
  std::vector<encoded_tensor_map> maps_;  // per plan tensor map
  // The buffer's address and the sizes for which a tensor map was encoded.
  struct encoded_for {
    const void* base = nullptr;
    std::uint32_t revision = 0;
  };
  std::vector<encoded_for> mapped_;  // per plan tensor map
  tensor_map filled_;                // the last one that was encoded
  std::vector<std::uint32_t> counters_;
};

}  // namespace kiln
