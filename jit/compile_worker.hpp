// Compiling one kernel in a process of its own, since LLVM may end its process (report_fatal_error, an unreachable, a stack overflow) or never
// come back. The worker is this program again: `kiln --compile-worker` reads one request from standard input and writes one response to standard output.
// Any thread may call compile_in_worker, several at once: each has its own worker, which costs some 30 ms more than compiling here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ir/shape.hpp"
#include "jit/child_process.hpp"
#include "mlir_bridge/kernel_configuration.hpp"

namespace kiln {

inline constexpr const char* compile_worker_argument = "--compile-worker";

struct compile_request {
  std::vector<std::byte> payload;  // a portable kernel's bytecode
  std::vector<shape> inputs, outputs;
  std::string target;              // a name that find_target() knows
  kernel_configuration configuration;
};

// The bytes of the native kernel. `executable` is called with compile_worker_argument. Throws what the compile itself throws, as in this process;
// error{compile_failed} for a worker that crashed or whose answer makes no sense; error{timed_out}; error{io}.
std::vector<std::byte> compile_in_worker(const compile_request& request, const child_limits& limits = {}, const std::string& executable = "/proc/self/exe");

// The worker's side: the response to a request. Errors become responses.
std::vector<std::byte> answer_compile_request(std::span<const std::byte> request);

// The worker's main function: the exit status.
int run_compile_worker();

}  // namespace kiln
