// Runs an executable as a child process under limits: bytes to its standard input, bytes from its standard output. For
// work that may take its process down with it, such as compiling a candidate that LLVM answers with abort().
//
// Whatever happens, the child is gone and waited for when the call ends, and no descriptor of it is left. Any thread
// may call it, several at once. The child inherits standard error as a pipe whose last lines go into error messages,
// and no other descriptor.
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
  std::int64_t memory_bytes = std::int64_t(8) << 30;  // of address space; sanitizers need more, so there it is not set
  std::int64_t output_bytes = std::int64_t(1) << 30;
};

// arguments[0] is the executable's path. Returns all that the child wrote to its standard output, if it ended with
// status 0. Throws error{timed_out} for one that ran past its limit, error{compile_failed} for one that ended
// otherwise, naming the signal or status and its last line on standard error, or that wrote too much; error{io} if it
// cannot be started.
std::vector<std::byte> run_in_child(const std::vector<std::string>& arguments, std::span<const std::byte> input,
                                    const child_limits& limits = {});

}  // namespace kiln
