// Runs the blocks of a plan on a context. Internal to executable.cpp. One thread.
#pragma once

#include "runtime/executable.hpp"

namespace kiln {

class plan_runner {
 public:
  // `profile` null: no clock is read.
  plan_runner(execution_context& context, device& target, run_profile* profile)
      : plan_(*context.plan_), table_(context.table_.data()), arguments_(context.arguments_.data()), device_(target), profile_(profile) {}

  void run_block(std::uint32_t block);

 private:
  void run(const launch_step& step);
  void run(const copy_step& step);
  void run(const if_step& step);
  void run(const loop_step& step);
  void run(const interpreted_step& step);
  void copy(buffer_id to, const void* from) { device_.copy(table_[to], from, plan_.buffers[to].bytes); }
  // A number that a kernel may have written, read by the host.
  template <class T>
  T scalar(buffer_id from);
  template <class T>
  void set_scalar(buffer_id to, T value) { device_.copy(table_[to], &value, sizeof value); }

  const plan& plan_;
  void** table_;
  void** arguments_;
  device& device_;
  run_profile* profile_;
};

}  // namespace kiln
