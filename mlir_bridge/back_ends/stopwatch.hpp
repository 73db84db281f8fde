// Measures the milliseconds of steps of a finalizer, for finalize_trace. Internal to mlir_bridge.
#pragma once

#include <chrono>

namespace kiln {

class stopwatch {
 public:
  // Milliseconds since construction or the last lap.
  double lap() {
    auto now = std::chrono::steady_clock::now();
    double ms = std::chrono::duration<double, std::milli>(now - start_).count();
    start_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace kiln
