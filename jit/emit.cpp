#include "jit/emit.hpp"

#include <fmt/format.h>

#include "ir/error.hpp"
#include "jit/finalize_spirv.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "spirv/object.hpp"

namespace kiln {

std::string emit_code(std::span<const std::byte> payload, std::span<const shape> inputs, const target_row& target,
                      std::string_view form) {
  bool is_spirv = is_spirv_payload(payload);
  if (form == "mlir" && !is_spirv) return print_kernel(payload);
  if (form != "llvm" && form != "asm")
    throw error(error_kind::unsupported,
                is_spirv ? fmt::format("an amdgcnspirv kernel has no '{}' form: ask for spirv, llvm or asm", form)
                         : fmt::format("an mlir_bytecode kernel has no '{}' form: ask for mlir, llvm or asm", form));
  finalize_trace trace;
  trace.want_texts = true;
  if (is_spirv) {
    finalize_spirv(payload, inputs, spirv::infer(spirv::deserialize_object(payload), inputs), target, &trace);
  } else {
    compiler_context context;
    portable_kernel kernel = portable_kernel::parse(context, payload);
    kernel.specialize(inputs);
    finalize(std::move(kernel), target, {}, &trace);
  }
  return form == "llvm" ? trace.llvm_ir : trace.assembly;
}

}  // namespace kiln
