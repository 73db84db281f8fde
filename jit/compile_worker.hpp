// Whatever reads a payload with LLVM or MLIR, in another process: MLIR's bytecode reader trusts counts and indices in
// the bytes, so that a damaged payload behind a right hash can corrupt the heap or loop, and LLVM may end its process
// (report_fatal_error, an unreachable, a stack overflow). The workers are this program again (`kiln
// --compile-worker`) or, in the library, a small program beside it;
// worker_pool.hpp says how they are started, limited and replaced.
//
// Payloads of files go here. Payloads that this process made itself may be compiled in it (compile_kernel.hpp). Any
// thread may call any function, several at once. All throw what the work itself throws, as in this process, and what
// worker_pool::ask throws. A worker keeps what it parsed, so that the candidates of one kernel start from clones.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/shape.hpp"
#include "jit/worker_pool.hpp"
#include "mlir_bridge/candidates.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

inline constexpr const char* compile_worker_argument = "--compile-worker";

// A payload to read or compile, and the target. Shapes are static; none are needed to print the form "mlir". The spans
// refer to memory of the caller.
struct compile_request {
  std::span<const std::byte> payload;  // MLIR bytecode or amdgcnspirv
  std::span<const shape> inputs, outputs;
  const target_row& target;
  kernel_configuration configuration = {};
};

// With `isolated` each worker does one compile and ends. `executable` is a program that calls run_compile_worker() when
// its one argument is compile_worker_argument; empty: this program where this code is part of it (kiln), otherwise
// KILN_COMPILE_WORKER, or kiln-compile-worker in the folder of the shared library that holds this code, since the
// program may be anybody's.
std::shared_ptr<worker_pool> make_compile_workers(bool isolated = false, const std::string& executable = {});

// Forks the workers' host now, for the first pool that make_compile_workers() makes. Call it while the process has one
// thread (worker_host.hpp).
void fork_compile_workers();

// The bytes of the native kernel.
std::vector<std::byte> compile_in_worker(worker_pool& workers, const compile_request& request,
                                         const worker_limits& limits = {});

// candidate_configurations() of a kernel in MLIR bytecode.
std::vector<kernel_configuration> candidates_in_worker(worker_pool& workers, const compile_request& request,
                                                       tuning_effort effort, const worker_limits& limits = {});

// The kernel as text: "mlir", "llvm" or "asm", as emit_code() gives it.
std::string text_in_worker(worker_pool& workers, const compile_request& request, const std::string& form,
                           const worker_limits& limits = {});

// The workers' main function: the exit status.
int run_compile_worker();

}  // namespace kiln
