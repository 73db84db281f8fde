// What the two GPU families call the same things: the names of LLVM's intrinsics, as data. Internal to mlir_bridge/gpu.
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
  std::string_view thread;                    // of a workgroup, in x
  std::array<std::string_view, 3> workgroup;  // of the grid
};
const intrinsic_names& intrinsics(target_family family);

// One call of an LLVM intrinsic; `result` may be null for none. Overloaded intrinsics get their suffix from the types.
Value call_intrinsic(code_builder& code, std::string_view name, mlir::Type result, std::span<const Value> operands);
inline Value call_intrinsic(code_builder& code, std::string_view name, mlir::Type result,
                            std::initializer_list<Value> operands = {}) {
  return call_intrinsic(code, name, result, std::span(operands.begin(), operands.size()));
}

}  // namespace kiln::gpu
