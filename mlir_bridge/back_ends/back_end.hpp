// The table of functions with which one family of targets turns LLVM IR into code. Each of cpu/, amd/ and nvidia/
// defines one constant object. Internal to mlir_bridge; the other folders use native_code.hpp.
#pragma once

#include <span>
#include <string>

#include "ir/native_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace llvm {
class Module;
}

namespace kiln {

struct back_end {
  // Registers LLVM's back end. Any thread may call it any number of times.
  void (*initialize)();
  // Runs LLVM's code generator at its highest optimization level instead of the default one.
  bool aggressive = false;
  bool small_code_model = false;
  // Optimizes the kernels of our generators with kernel_pipeline() instead of LLVM's O3 pipeline: all of them, or
  // products and convolutions that go through shared memory, whose code is long, and versions of products for all
  // sizes. On NVIDIA GPUs other kernels lose speed by it (bench/README.md, "Compile time of kernels").
  bool short_pipeline = false, short_pipeline_of_products = false;
  // Runs LLVM's loop strength reduction. On CPUs it takes two fifths of the code generator's time and makes kernels at
  // most 2 % faster; for NVIDIA GPUs ptxas optimizes the code again (bench/README.md, "Compile time of kernels").
  bool strength_reduction = true;

  // Optional hooks, called before and after LLVM's optimizer.
  void (*before_optimization)(llvm::Module&, const target_row&, std::span<launch>) = nullptr;
  void (*after_optimization)(llvm::Module&, const target_row&) = nullptr;
  // Generates the kernel's object from the optimized module, which is consumed. If `assembly` is not null, also stores
  // the assembly text there.
  void (*emit)(llvm::Module&, const target_row&, native_kernel&, std::string* assembly);
  // Optional. Reads the statistics of each launch, and the kernel's registers and spills, from the object. Throws
  // error{compile_failed} if the object has no code for a launch.
  void (*add_statistics)(native_kernel&) = nullptr;
};

extern const back_end cpu_back_end, amd_back_end, nvidia_back_end;

const back_end& back_end_of(target_family family);

}  // namespace kiln
