// The back end for NVIDIA GPUs: PTX text with a terminating NUL, which the driver or ptxas assembles.
#include <algorithm>
#include <mutex>
#include <span>

#include "ir/error.hpp"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "mlir_bridge/back_ends/back_end.hpp"
#include "mlir_bridge/back_ends/machine_code.hpp"
#include "mlir_bridge/back_ends/nvidia/dependent_launch.hpp"
#include "mlir_bridge/back_ends/nvidia/ptx_info.hpp"

namespace kiln {
namespace {

void initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

// The target table names the lowest PTX version that nearly all kernels can use, so that older drivers accept them.
// Warpgroup products of unsigned by signed bytes need PTX 8.4 (CUDA 12.4).
void raise_version(std::string& ptx) {
  constexpr std::string_view lower = ".version 8.0\n", higher = ".version 8.4\n";
  const bool mixed = ptx.find(".s32.u8.s8 ") != std::string::npos || ptx.find(".s32.s8.u8 ") != std::string::npos;
  if (const std::size_t at = ptx.find(lower); mixed && at != std::string::npos) ptx.replace(at, lower.size(), higher);
}

void emit(llvm::Module& module, const target_row& target, native_kernel& kernel, std::string* assembly) {
  std::string ptx = codegen::emit_assembly(module, target);
  raise_version(ptx);
  auto bytes = std::as_bytes(std::span(ptx.c_str(), ptx.size() + 1));
  kernel.object.assign(bytes.begin(), bytes.end());
  if (assembly) *assembly = std::move(ptx);
}

void add_statistics(native_kernel& kernel) {
  auto entries = gpu::read_ptx({reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size()});
  for (launch& l : kernel.launches) {
    auto found = std::ranges::find(entries, l.symbol, &gpu::ptx_entry_info::name);
    if (found == entries.end()) throw error(error_kind::compile_failed, "the PTX has no kernel '" + l.symbol + "'");
    l.statistics.private_bytes = found->local_bytes;
    l.statistics.matrix_instructions = found->mma + found->wgmma;
  }
}

}  // namespace

const back_end nvidia_back_end{.initialize = initialize,
                               .aggressive = true,
                               .short_pipeline_of_products = true,
                               .strength_reduction = false,
                               .before_optimization = gpu::begin_as_dependent,
                               .emit = emit,
                               .add_statistics = add_statistics};

}  // namespace kiln
