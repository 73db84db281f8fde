// Runs the blocks of a plan on a context, in the order of a stream. Internal to executable.cpp. One thread.
#pragma once

#include "runtime/executable.hpp"

namespace kiln {

class plan_runner {
 public:
  // `timer` null: nothing is timed.
  plan_runner(execution_context& context, device_stream& stream, step_timer* timer)
      : plan_(*context.plan_), table_(context.table_.data()), context_(context), device_(*context.device_), stream_(stream), timer_(timer), host_(device_.info().host_memory) {}

  void run_block(std::uint32_t block);

 private:
  void run(const launch_step& step);
  void run(const copy_step& step);
  void run(const if_step& step);
  void run(const loop_step& step);
  void run(const interpreted_step& step);
  void copy(buffer_id to, const void* from) { device_.copy(table_[to], from, plan_.buffers[to].bytes, &stream_); }
  // A number that a kernel may have written, read by the host.
  template <class T>
  T scalar(buffer_id from);
  template <class T>
  void set_scalar(buffer_id to, T value) { device_.upload(table_[to], &value, sizeof value, &stream_); }

  const plan& plan_;
  void** table_;
  execution_context& context_;
  device& device_;
  device_stream& stream_;
  step_timer* timer_;
  bool host_;
};

}  // namespace kiln
