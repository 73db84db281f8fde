// Names of LLVM's intrinsics for each GPU family, as a table. Internal to mlir_bridge/gpu.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "mlir_bridge/codegen/code_builder.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

using namespace codegen;

struct intrinsic_names {
  // Index of a thread in its workgroup (x).
  std::string_view thread;
  // Index of a workgroup in the grid (x, y, z).
  std::array<std::string_view, 3> workgroup;
};
const intrinsic_names& intrinsics(target_family family);

// Emits a call of an LLVM intrinsic. `result` is null for intrinsics without a result. Overloaded intrinsics get their
// suffix from the types.
Value call_intrinsic(code_builder& code, std::string_view name, mlir::Type result, std::span<const Value> operands);
inline Value call_intrinsic(code_builder& code, std::string_view name, mlir::Type result,
                            std::initializer_list<Value> operands = {}) {
  return call_intrinsic(code, name, result, std::span(operands.begin(), operands.size()));
}

}  // namespace kiln::gpu
