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

struct function_row {
  std::string_view name, elementary;
  bool needs_multiply_add = false;
};

// fmod is not among them: its long division is by lanes in any case. MLIR expands tanh, and erf without multiply-add.
constexpr auto functions = std::to_array<function_row>({{"exp", "exp.flushed"},
                                                        {"log", "log"},
                                                        {"pow", "pow"},
                                                        {"erf", "erf.polynomial", true},
                                                        {"sin", "sin", true},
                                                        {"cos", "cos", true},
                                                        {"tan", "tan", true},
                                                        {"asin", "asin"},
                                                        {"acos", "acos"},
                                                        {"atan", "atan"},
                                                        {"sinh", "sinh"},
                                                        {"cosh", "cosh"},
                                                        {"asinh", "asinh"},
                                                        {"acosh", "acosh"},
                                                        {"atanh", "atanh"}});

Value find_function(code_builder& code, std::string_view name, std::span<const Value> operands, bool multiply_add) {
  if (!code_builder::scalar_of(operands[0]).isF32()) return {};
  auto row = std::ranges::find(functions, name, &function_row::name);
  if (row == functions.end() || (row->needs_multiply_add && !multiply_add)) return {};
  return elementary_function(code, row->elementary, operands, cpu_approximations);
}

}  // namespace

Value vector_function(code_builder& code, std::string_view name, std::span<const Value> operands) {
  return find_function(code, name, operands, true);
}

Value vector_function_without_multiply_add(code_builder& code, std::string_view name, std::span<const Value> operands) {
  return find_function(code, name, operands, false);
}

}  // namespace kiln::cpu
