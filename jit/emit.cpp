#include "jit/emit.hpp"

#include <fmt/format.h>

#include "ir/error.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/portable_kernel.hpp"

namespace kiln {

std::string emit_code(std::span<const std::byte> payload, std::span<const shape> inputs, const target_row& target, std::string_view form) {
  if (form != "llvm" && form != "asm") throw error(error_kind::unsupported, fmt::format("an mlir_bytecode kernel has no '{}' form: ask for mlir, llvm or asm", form));
  compiler_context context;
  portable_kernel kernel = portable_kernel::parse(context, payload);
  kernel.specialize(inputs);
  finalize_trace trace;
  trace.want_texts = true;
  finalize(std::move(kernel), target, {}, &trace);
  return form == "llvm" ? trace.llvm_ir : trace.assembly;
}

}  // namespace kiln
