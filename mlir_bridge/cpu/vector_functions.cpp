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

enum class processors { all, with_multiply_add, without_multiply_add };

struct function_row {
  std::string_view name, elementary;
  processors on = processors::all;
};

// fmod is not among them: its long division is by lanes in any case. MLIR expands tanh with multiply-add, without which
// its quotient of polynomials is 4.4 units off in the last place, and erf without multiply-add.
constexpr auto functions = std::to_array<function_row>({{"exp", "exp.flushed"},
                                                        {"log", "log"},
                                                        {"pow", "pow"},
                                                        {"erf", "erf.polynomial", processors::with_multiply_add},
                                                        {"sin", "sin", processors::with_multiply_add},
                                                        {"cos", "cos", processors::with_multiply_add},
                                                        {"tan", "tan", processors::with_multiply_add},
                                                        {"tanh", "tanh", processors::without_multiply_add},
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
  const processors other = multiply_add ? processors::without_multiply_add : processors::with_multiply_add;
  if (row == functions.end() || row->on == other) return {};
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
