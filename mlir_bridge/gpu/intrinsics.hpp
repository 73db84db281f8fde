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

// What LLVM's schedulers for AMD GPUs may move across a point. Matrix instructions are not among the arithmetic.
enum class passing { nothing, arithmetic };
// A point in the schedule: loads that are issued before it stay in front of the work that hides their latency, and that
// work stays in front of the wait. Emits nothing on NVIDIA GPUs, where ptxas schedules.
void schedule_barrier(code_builder& code, target_family family, passing allowed);

}  // namespace kiln::gpu
