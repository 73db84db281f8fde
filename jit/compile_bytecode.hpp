// The device-side half of compilation: turns every portable code object of a program into a native one for one target.
// Code objects are grouped by (payload, concrete shapes, target); for each group tuning records name the configuration,
// the kernel cache is asked, and what it lacks is compiled: a payload is parsed once, every compile works on a clone,
// on a bounded pool, under a time limit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "jit/cache/kernel_key.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

class kernel_cache;
class tuning_records;
class worker_pool;

struct jit_options {
  target_row target;
  kernel_configuration configuration =
      {};  // of every kernel, in place of the defaults; names that a generator does not know do nothing
  kernel_cache* cache = nullptr;  // none: always compile, keep nothing
  const tuning_records* records =
      nullptr;      // what tuning found: configurations in place of the defaults, where `configuration` is empty
  int threads = 0;  // compiling at once; 0: as many as the machine has
  std::chrono::milliseconds kernel_limit{60000};  // for one kernel
  bool only_if_cached = false;                    // error{absent} rather than compile
  // Where the device's driver is a compiler (PTX → machine code): it, and the version of the driver, which becomes part
  // of the key. Called from the compiling threads. Without it kernels stay as the finalizer made them.
  std::function<std::vector<std::byte>(std::span<const std::byte> object)> assemble = nullptr;
  std::string driver = {};
  std::int64_t rocm =
      0;  // the version of HIP where that compiles amdgcnspirv too (rocm_candidate.hpp): what the tuner may try
  // Who reads and compiles payloads (make_compile_workers). Without it this process does, which is for payloads that it
  // made itself only.
  std::shared_ptr<worker_pool> workers = nullptr;
  std::function<void(std::size_t done, std::size_t total)> progress =
      nullptr;  // called from the compiling threads, one at a time
};

struct kernel_report {
  std::string symbol;
  std::string payload;  // hex
  std::vector<shape> inputs;
  int occurrences = 0;  // instructions that share it
  bool cached = false;
  double compile_ms = 0;
  std::string native;  // hex: the payload it became
  kernel_configuration configuration;
};

struct jit_report {
  std::vector<kernel_report> kernels;  // one per group, in the program's order
  std::size_t hits = 0, misses = 0;    // what another process made meanwhile is a hit
  double elapsed_ms = 0;
};

// `bound` has no open symbols (program::bind). All modules are done, the bodies of If and Loop too. The result holds
// native code objects only; payloads that are no longer used are dropped from its kernel table. Throws
// error{unsupported, compile_failed, timed_out} naming the kernel; error{absent} with only_if_cached.
program compile_bytecode(const program& bound, const jit_options& options, jit_report* report = nullptr);

// What compile_bytecode would look for in the cache: one for each group of code objects. `driver` and `records` as in
// jit_options.
struct wanted_kernel {
  std::string symbol;
  kernel_key key;
};
std::vector<wanted_kernel> wanted_kernels(const program& bound, const target_row& target,
                                          const std::string& driver = {}, const tuning_records* records = nullptr);

// Versions that compiled code depends on, for keys and `kiln --version`.
std::string compiler_version();

}  // namespace kiln
