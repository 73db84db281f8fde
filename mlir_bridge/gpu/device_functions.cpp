#include "mlir_bridge/gpu/device_functions.hpp"

#include <string>

#include "ir/error.hpp"
#include "mlir_bridge/codegen/elementary_functions.hpp"

namespace kiln::gpu {

using namespace codegen;

namespace {

constexpr approximations amd_approximations{"llvm.amdgcn.exp2", "llvm.amdgcn.log", "llvm.amdgcn.rcp"};
constexpr approximations nvidia_approximations{"llvm.nvvm.ex2.approx.ftz", "llvm.nvvm.lg2.approx.ftz.f",
                                               "llvm.nvvm.rcp.approx.ftz.f"};

Value device_function(code_builder& code, std::string_view name, std::span<const Value> operands,
                      const approximations& hardware) {
  if (Value result = elementary_function(code, name, operands, hardware)) return result;
  const bool wide = code_builder::scalar_of(operands[0]).isF64();
  throw error(error_kind::unsupported, std::string(code.on.name) + " code generation has no " + std::string(name) +
                                           (wide ? " of f64; convert the operand to f32" : ""));
}

}  // namespace

Value amd_function(code_builder& code, std::string_view name, std::span<const Value> operands) {
  return device_function(code, name, operands, amd_approximations);
}
Value nvidia_function(code_builder& code, std::string_view name, std::span<const Value> operands) {
  return device_function(code, name, operands, nvidia_approximations);
}

}  // namespace kiln::gpu
