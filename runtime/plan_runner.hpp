// Executes the blocks of a plan in stream order. Internal to executable.cpp. One thread.
#pragma once

#include "runtime/graph/replay.hpp"
#include "runtime/plan_pointers.hpp"
#include "runtime/step_timer.hpp"

namespace kiln {

class plan_runner {
 public:
  // `graphs` null: no graphs; `timer` null: nothing is timed.
  plan_runner(const plan& what, plan_pointers& pointers, device& target, device_stream& stream, graph_run* graphs,
              step_timer* timer)
      : plan_(what), pointers_(pointers), device_(target), stream_(stream), graphs_(graphs), timer_(timer) {}

  void run_block(std::uint32_t block);

 private:
  void run(const launch_step& step);
  void run(const copy_step& step);
  void run(const count_step& step);
  void run(const call_step& step);
  void run(const check_step& step);
  void run(const if_step& step);
  void run(const loop_step& step);
  std::int64_t most_scanned_trips(const loop_step& step) const;
  void run(const interpreted_step& step);
  void copy(buffer_id to, const void* from) { device_.copy(pointers_[to], from, plan_.buffers[to].bytes, &stream_); }
  // Reads a number on the host. A kernel may have written it, so this may wait for the device.
  template <class T>
  T scalar(buffer_id from);

  const plan& plan_;
  plan_pointers& pointers_;
  device& device_;
  device_stream& stream_;
  graph_run* graphs_;
  step_timer* timer_;
};

}  // namespace kiln
