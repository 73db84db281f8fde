// Native kernels of one program for one target: out of the cache, or compiled, in workers (compile_worker.hpp) or in
// this process. A payload is parsed and specialized once for each set of shapes (by each worker); every configuration
// starts from a clone of that. What compile_bytecode and the tuner share.
//
// Any thread may call any function, several at once. The program and what `options` point to must outlive it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ir/native_kernel.hpp"
#include "jit/cache/work_claim.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/kernel_groups.hpp"
#include "mlir_bridge/candidates.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"

namespace kiln {

using native_bytes = std::shared_ptr<const std::vector<std::byte>>;  // a serialized native_kernel

class kernel_compiler {
 public:
  kernel_compiler(const program& source, const jit_options& options) : source_(source), options_(options) {}
  kernel_compiler(const kernel_compiler&) = delete;

  // What the caller demands, else what tuning found, else the default.
  kernel_configuration configuration(const kernel_group& g) const;
  kernel_key key(const kernel_group& g, const kernel_configuration& configuration) const;

  // Null where the cache has none that reads back as a kernel, or there is no cache.
  native_bytes find(const kernel_group& g, const kernel_configuration& configuration) const;

  // Before compiling what was not found, so that several processes do not all do it; `find_made` then looks again,
  // since another may just have finished. With `wait` until no other process is at it, or has been for longer than any
  // compile may take.
  work_claim claim(const kernel_group& g, const kernel_configuration& configuration, bool wait) const;
  native_bytes find_made(const kernel_group& g, const kernel_configuration& configuration) const;

  // In a worker, or in this process under a deadline, as the options say; then through the device's driver where that
  // compiles. Throws what compile_kernel and compile_in_worker throw, with the kernel's name.
  native_bytes compile(const kernel_group& g, const kernel_configuration& configuration);

  void keep(const kernel_group& g, const kernel_configuration& configuration, const native_bytes& native) const;

  // The form that HIP compiles itself (jit/rocm_candidate.hpp), of a kernel in amdgcnspirv; none where there is none.
  std::optional<native_kernel> rocm_form(const kernel_group& g) const;

  // What a tuner may try of a kernel in MLIR bytecode. Throws what candidate_configurations and candidates_in_worker
  // throw.
  std::vector<kernel_configuration> candidates(const kernel_group& g, tuning_effort effort);

  // The kernel with the group's shapes, the caller's own, read in this process.
  portable_kernel clone(const kernel_group& g);

 private:
  struct entry {
    std::mutex mutex;
    std::optional<portable_kernel> parsed;
    std::map<content_hash, portable_kernel> specialized;  // by shapes
  };
  std::vector<std::byte> finalize_portable(const kernel_group& g, const kernel_configuration& configuration);
  const program& source_;
  const jit_options& options_;
  std::mutex mutex_;
  std::optional<compiler_context> context_;  // made on the first miss: a warm start needs none
  std::map<std::string, std::shared_ptr<entry>> entries_;
};

}  // namespace kiln
