#include "mlir_bridge/cpu/vector_functions.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "mlir_bridge/codegen/elementary_functions.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"

namespace kiln::cpu {

using namespace codegen;

namespace {

constexpr approximations cpu_approximations{
    "", "", "", +[](code_builder& code, std::string_view name, std::span<const Value> operands) {
      return call_libm_by_lane(code, std::string(name), operands);
    }};

// fmod is not among them: its long division is by lanes in any case. MLIR expands exp, tanh and erf, with fewer
// instructions: exp flushes results below the smallest normal number to 0.
constexpr auto names = std::to_array<std::string_view>(
    {"log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "pow"});

}  // namespace

Value vector_function(code_builder& code, std::string_view name, std::span<const Value> operands) {
  if (!code_builder::scalar_of(operands[0]).isF32() || std::ranges::find(names, name) == names.end()) return {};
  return elementary_function(code, name, operands, cpu_approximations);
}

}  // namespace kiln::cpu
