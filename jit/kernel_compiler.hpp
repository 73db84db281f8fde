// Provides the native kernels of one program for one target, from the cache or by compiling them, in workers
// (compile_worker.hpp) or in this process. A payload is parsed and specialized once for each set of shapes (once per
// worker); every configuration starts from a clone of that. Used by compile_bytecode and the tuner.
//
// All functions may be called from several threads at once. The program, the options and what they point to must
// outlive this object.
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

  // The configuration to use: the options', else the tuned one, else the default.
  kernel_configuration configuration(const kernel_group& g) const;
  kernel_key key(const kernel_group& g, const kernel_configuration& configuration) const;

  // The cached kernel, also one that the second driver made. Null if there is no cache, or no entry that deserializes
  // as a kernel.
  native_bytes find(const kernel_group& g, const kernel_configuration& configuration) const;

  // The cached kernel of the device's family (jit_options::family), in its default configuration. Null if there is
  // none.
  native_bytes find_general(const kernel_group& g) const;

  // Claims a kernel before compiling it, so that several processes do not all compile it. Afterwards find_made() looks
  // again, because another process may just have stored it. With `wait`, waits until no other process has the claim,
  // but at most as long as a compilation may take.
  work_claim claim(const kernel_group& g, const kernel_configuration& configuration, bool wait) const;
  native_bytes find_made(const kernel_group& g, const kernel_configuration& configuration) const;

  // Compiles in a worker, or in this process under a deadline, as the options say; then calls the device's driver if it
  // is a compiler (jit_options::assemble). Throws what compile_kernel and compile_in_worker throw, with the kernel's
  // name.
  native_bytes compile(const kernel_group& g, const kernel_configuration& configuration);

  // Stores the kernel under the key of whoever assembled it, and then releases the claim.
  void keep(const kernel_group& g, const kernel_configuration& configuration, const native_bytes& native,
            work_claim claim = {}) const;

  // The form of an amdgcnspirv kernel that HIP compiles itself, if there is one (rocm_candidate.hpp).
  std::optional<native_kernel> rocm_form(const kernel_group& g) const;

  // The configurations that the tuner may try for a kernel in MLIR bytecode. Throws what candidate_configurations and
  // candidates_in_worker throw.
  std::vector<kernel_configuration> candidates(const kernel_group& g, tuning_effort effort);

  // A clone of the kernel, specialized to the group's shapes and parsed in this process. The caller owns it.
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
  mutable std::mutex mutex_;
  std::optional<compiler_context> context_;  // created on the first miss; a warm start needs none
  std::map<std::string, std::shared_ptr<entry>> entries_;
  std::map<content_hash, std::string> assembled_by_;  // by the usual key: kernels that options_.driver did not assemble
};

}  // namespace kiln
