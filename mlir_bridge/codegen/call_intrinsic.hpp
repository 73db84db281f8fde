// Emits a call of an LLVM intrinsic.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

// `result` is null for intrinsics without a result. Overloaded intrinsics get their suffix from the types.
Value call_intrinsic(code_builder& code, std::string_view name, mlir::Type result, std::span<const Value> operands);
inline Value call_intrinsic(code_builder& code, std::string_view name, mlir::Type result,
                            std::initializer_list<Value> operands = {}) {
  return call_intrinsic(code, name, result, std::span(operands.begin(), operands.size()));
}

}  // namespace kiln::codegen
