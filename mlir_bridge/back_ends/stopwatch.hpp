// What finalizers measure and print for finalize_trace. Internal to mlir_bridge.
#pragma once

#include <chrono>
#include <string>

#include "llvm/Support/raw_ostream.h"

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

// What `print` writes to a stream of LLVM's.
template <class Printable>
std::string printed(Printable print) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  print(stream);
  return text;
}

}  // namespace kiln
