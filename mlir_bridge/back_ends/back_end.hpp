// How LLVM IR becomes the code of one family of targets: one constant object for each, in cpu/, amd/ and nvidia/.
// Internal to mlir_bridge; native_code.hpp is what the rest of it calls.
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
  // Registers LLVM's back end. Any thread, any number of times.
  void (*initialize)();
  bool aggressive = false;  // LLVM's code generator at its highest level (instead of its default)
  bool small_code_model = false;

  // Optional. Before and after LLVM's optimizer.
  void (*before_optimization)(llvm::Module&, const target_row&, std::span<launch>) = nullptr;
  void (*after_optimization)(llvm::Module&, const target_row&) = nullptr;
  // Fills the kernel's object, and `assembly` where it is not null, from the optimized module, which is consumed.
  void (*emit)(llvm::Module&, const target_row&, native_kernel&, std::string* assembly);
  // Optional. Fills the statistics of the launches, and the kernel's registers and spills, from its object. Throws
  // error{compile_failed} where a launch has no code.
  void (*add_statistics)(native_kernel&) = nullptr;
};

extern const back_end cpu_back_end, amd_back_end, nvidia_back_end;

const back_end& back_end_of(target_family family);

}  // namespace kiln
