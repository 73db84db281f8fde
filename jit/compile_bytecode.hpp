// The device-side half of compilation: turns every portable code object of a program into a native one for one target.
// Code objects are grouped by (payload, concrete shapes, target). For each group the tuning records select a
// configuration and the cache is looked up; misses are compiled on a bounded thread pool, each under a time limit. A
// payload is parsed once, and every compilation works on a clone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "jit/assembled_object.hpp"
#include "jit/cache/kernel_key.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

class kernel_cache;
class tuning_records;
class worker_pool;

struct jit_options {
  target_row target;
  // A row whose kernels run on the same device (the generic one of its family). The cache is asked for its kernels
  // where it has none of `target`; nothing is compiled for it.
  std::optional<target_row> family = std::nullopt;
  // Used for every kernel instead of the default; a generator ignores names that it does not know.
  kernel_configuration configuration = {};
  kernel_cache* cache = nullptr;  // null: always compile and store nothing
  // Return before the cache has stored what was compiled (kernel_cache::store_later).
  bool store_later = false;
  // Tuned configurations, used instead of the default if `configuration` is empty. May be null.
  const tuning_records* records = nullptr;
  // Used instead of the default for kernels without a tuned configuration. Keyed by group_identity().
  std::map<content_hash, kernel_configuration> preferred = {};
  int threads = 0;                                // compiler threads; 0: as many as this process may use
  std::chrono::milliseconds kernel_limit{60000};  // for one kernel
  bool only_if_cached = false;                    // throw error{not_cached} instead of compiling
  // Compile code objects with open dims as open kernels (ir/native_kernel.hpp) instead of refusing them. Each must have
  // an open form (has_open_form).
  bool open = false;
  // Set if the device's driver is a compiler (PTX to machine code): a function that calls it. Called from the compiler
  // threads. If null, the finalizer's output is used as it is.
  std::function<assembled_object(std::span<const std::byte> object)> assemble = nullptr;
  // Who assembles, which is part of the cache key. If `driver` refuses a kernel, `second_driver` assembles it; its
  // entry is looked up second. Empty: there is no second one.
  std::string driver = {}, second_driver = {};
  // HIP_VERSION if HIP can compile amdgcnspirv (rocm_candidate.hpp), else 0. The tuner may then try it.
  std::int64_t rocm = 0;
  // The workers that parse and compile payloads (make_compile_workers). If null, this process does; that is only safe
  // for payloads that it made itself.
  std::shared_ptr<worker_pool> workers = nullptr;
  // Called from the compiler threads, one call at a time.
  std::function<void(std::size_t done, std::size_t total)> progress = nullptr;
};

struct kernel_report {
  std::string symbol;
  std::string payload;  // hex
  std::vector<shape> inputs;
  int occurrences = 0;  // number of instructions that use the kernel
  bool cached = false;
  double compile_ms = 0;
  std::string native;  // hex hash of the native kernel
  kernel_configuration configuration;
};

struct jit_report {
  std::vector<kernel_report> kernels;  // one per group, in the program's order
  std::size_t hits = 0, misses = 0;    // a kernel that another process compiled meanwhile is a hit
  double elapsed_ms = 0;
};

// `bound` must have no open symbols (program::bind). All modules are compiled, including the bodies of If and Loop. The
// result holds only native code objects; unused payloads are dropped from its kernel table. Throws error{unsupported,
// compile_failed, timed_out} with the kernel's name; error{not_cached} with only_if_cached.
program compile_bytecode(const program& bound, const jit_options& options, jit_report* report = nullptr);

// A cache entry that compile_bytecode looks up. wanted_kernels returns one for each group of code objects. `driver` and
// `records` as in jit_options.
struct wanted_kernel {
  std::string symbol;
  kernel_key key;
};
std::vector<wanted_kernel> wanted_kernels(const program& bound, const target_row& target,
                                          const std::string& driver = {}, const tuning_records* records = nullptr);

// The versions of everything that compiled code depends on, for keys and `kiln --version`.
std::string compiler_version();

}  // namespace kiln
