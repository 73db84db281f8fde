// Times the steps of runs with device events that are recorded between the steps in the stream, so that a GPU does not
// wait for the host. Used by one thread. Allocates only in the constructor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device.hpp"

namespace kiln {

// Time spent in each instruction of a plan, summed over timed runs: entry i belongs to plan::instructions[i].
struct run_profile {
  struct entry {
    std::int64_t nanoseconds = 0, steps = 0;
  };
  std::vector<entry> instructions;
  std::int64_t runs = 0, nanoseconds = 0;
};

class step_timer {
 public:
  explicit step_timer(device& target);
  // Adds times to `profile` from now on. `profile` must outlive the run.
  void start(run_profile& profile) { profile_ = &profile; }
  void begin(std::uint32_t instruction, device_stream& stream);
  void end(device_stream& stream);
  void finish();  // waits for the timed work

 private:
  struct timed_step {
    std::uint32_t instruction = 0;
    std::unique_ptr<device_event> begin, end;
  };
  std::array<timed_step, 256> steps_;
  std::size_t used_ = 0;
  run_profile* profile_ = nullptr;
};

}  // namespace kiln
