// A parsed portable kernel, the input of code generation. Parse a payload once, clone() it per candidate, and
// specialize() the clone. This header needs no MLIR; code generators include
// mlir_bridge/kernel/portable_kernel_impl.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/module.hpp"

namespace kiln {

// An MLIRContext with all dialects of code generation loaded. Creating one takes milliseconds: make one per process or
// thread pool. Any number of threads may parse, clone, specialize and compile different kernels in it at once. Copies
// share the context.
class compiler_context {
 public:
  compiler_context();
  struct implementation;
  const std::shared_ptr<implementation>& impl() const { return impl_; }

 private:
  std::shared_ptr<implementation> impl_;
};

// One kernel and its context, which it keeps alive. Not thread-safe, but threads may use different kernels at the same
// time.
class portable_kernel {
 public:
  // Verifies everything. Throws error{newer_version} for a dialect version above dialect_version(), error{unsupported}
  // if there is an operation that is not a kernel operation, error{corrupted} for all other errors. The message
  // contains MLIR's diagnostics; nothing is printed to stderr. MLIR's reader can crash or loop on bytes that
  // write_kernel did not write, so payloads from files are parsed in a worker process (jit/compile_worker.hpp).
  static portable_kernel parse(const compiler_context& context, std::span<const std::byte> bytecode);
  portable_kernel(portable_kernel&&) noexcept;
  portable_kernel& operator=(portable_kernel&&) noexcept;
  ~portable_kernel();
  portable_kernel clone() const;

  // Replaces symbolic dimensions by their values for these shapes, and infers every type of the kernel again. `outputs`
  // may be empty; they are needed if a symbol occurs in no input (a scalar broadcast to [batch, 64]). Throws
  // error{invalid_model} if the shapes do not match the kernel or leave a dimension open; the kernel is then partly
  // changed and must be discarded. Afterwards every shape is static, with one exception: if some of the given dims
  // are still symbolic, these stay, in terms of the kernel's symbols, and code generation makes an open kernel
  // (ir/native_kernel.hpp).
  void specialize(std::span<const shape> inputs, std::span<const shape> outputs = {});

  std::string symbol() const;
  std::vector<shape> input_shapes() const;
  std::vector<shape> output_shapes() const;
  std::string print() const;

  struct implementation;
  implementation& impl() const { return *impl_; }

 private:
  explicit portable_kernel(std::unique_ptr<implementation> impl);
  std::unique_ptr<implementation> impl_;
};

// Returns the kernel as an IR module named after its symbol, for the reference implementation and for tests. Kernels do
// not store names, so parameters are "input0", "input1", ... and outputs "output0", ...
std::unique_ptr<module> to_fusion(const portable_kernel& kernel);

}  // namespace kiln
