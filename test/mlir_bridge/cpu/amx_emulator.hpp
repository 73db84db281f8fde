// Executes the instructions of AMX (tile configuration, loads, stores and products) on processors that lack them: a
// handler of SIGILL decodes the instruction that stopped the program, does what it says and continues behind it. The
// tile registers belong to the thread. Factors and sums that are denormal become 0, as on the processor.
#pragma once

#include <cstdint>

namespace kiln::test {

// From construction to destruction, AMX instructions of the process are emulated. Other illegal instructions end the
// program as before. On other architectures it does nothing.
class amx_emulator {
 public:
  amx_emulator();
  ~amx_emulator();
  amx_emulator(const amx_emulator&) = delete;

  // Products that this thread has emulated so far.
  static std::int64_t products();
  // Whether this thread's registers are configured: a kernel must release them before it returns.
  static bool is_configured();
};

}  // namespace kiln::test
