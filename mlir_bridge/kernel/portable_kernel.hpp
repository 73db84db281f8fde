// A kernel's bytecode, parsed: what code generation starts from. Parse a payload once, clone() it per candidate,
// specialize() the clone. This header needs no MLIR; the code generators include
// mlir_bridge/kernel/portable_kernel_impl.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/module.hpp"

namespace kiln {

// An MLIRContext with every dialect that code generation uses, loaded. Expensive (milliseconds): one per process or
// compile pool. Any number of threads may parse, clone, specialize and compile different kernels in it at once. Copies
// share the context.
class compiler_context {
 public:
  compiler_context();
  struct implementation;
  const std::shared_ptr<implementation>& impl() const { return impl_; }

 private:
  std::shared_ptr<implementation> impl_;
};

// One kernel in a context, which it keeps alive. Not thread-safe; two kernels may be used by two threads.
class portable_kernel {
 public:
  // Verifies everything. Throws error{newer_version} for a dialect version above dialect_version(), error{unsupported}
  // where there is anything but kernel operations, error{corrupted} for all else. MLIR's diagnostics are in the
  // message, never on stderr. MLIR's reader can crash or loop on bytes that write_kernel did not write: a file's
  // payloads are parsed in a worker (jit/compile_worker.hpp).
  static portable_kernel parse(const compiler_context& context, std::span<const std::byte> bytecode);
  portable_kernel(portable_kernel&&) noexcept;
  portable_kernel& operator=(portable_kernel&&) noexcept;
  ~portable_kernel();
  portable_kernel clone() const;

  // Replaces symbolic dimensions by what they are for these shapes, and derives every type of the kernel anew.
  // `outputs` may be empty; they are needed where a symbol occurs in no input (a scalar broadcast to [batch, 64]).
  // Throws error{invalid_model} where the shapes do not fit the kernel or leave a dimension open (the kernel is then
  // half changed: throw it away). Afterwards every shape is static, unless the shapes are exactly the kernel's own,
  // with open dims: this asks for an open kernel (ir/native_kernel.hpp), and nothing is replaced.
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

// The kernel as an IR module named after its symbol, for the reference implementation and for tests. Parameters are
// named "input0", "input1", ... and outputs "output0", ..., as a kernel has no names for them.
std::unique_ptr<module> to_fusion(const portable_kernel& kernel);

}  // namespace kiln
