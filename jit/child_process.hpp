// Runs an executable as a child process under limits, passing bytes to its standard input and returning those of its
// standard output. For work that may crash its process, such as compiling a candidate for which LLVM calls abort().
//
// When the call ends, in whatever way, the child has ended and been waited for, and all descriptors are closed. May be
// called from several threads at once. The child's standard error is captured, and its last line becomes part of error
// messages. The child inherits no other descriptors.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln {

struct child_limits {
  std::chrono::milliseconds time{60000};              // from start to end
  std::int64_t memory_bytes = std::int64_t(8) << 30;  // of address space; not enforced in sanitizer builds
  std::int64_t output_bytes = std::int64_t(1) << 30;
};

// arguments[0] is the executable's path. Returns everything that the child wrote to its standard output, if it ended
// with status 0. Throws error{timed_out} if it exceeded its time limit; error{compile_failed} if it ended otherwise
// (with the signal or status and its last line on standard error) or wrote too much; error{io} if it cannot be started.
std::vector<std::byte> run_in_child(const std::vector<std::string>& arguments, std::span<const std::byte> input,
                                    const child_limits& limits = {});

}  // namespace kiln
