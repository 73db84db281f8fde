#include "mlir_bridge/gpu/device_functions.hpp"

#include <algorithm>
#include <array>
#include <numbers>
#include <string>

#include "ir/error.hpp"

namespace kiln::gpu {

using namespace codegen;

namespace {

namespace arith = mlir::arith;
namespace math = mlir::math;

Value natural_exponential(code_builder& b, std::span<const Value> x) {
  return b.make<math::Exp2Op>(b.make<arith::MulFOp>(x[0], b.number(x[0].getType(), std::numbers::log2e)).getResult());
}

Value natural_logarithm(code_builder& b, std::span<const Value> x) {
  return b.make<arith::MulFOp>(b.make<math::Log2Op>(x[0]).getResult(), b.number(x[0].getType(), std::numbers::ln2));
}

// MLIR's polynomials (lowering.cpp).
template <class Op>
Value polynomial(code_builder& b, std::span<const Value> x) {
  return b.make<Op>(x[0]);
}

struct function_row {
  std::string_view name;
  Value (*build)(code_builder&, std::span<const Value>);
};

constexpr auto functions = std::to_array<function_row>({
    {"exp", natural_exponential},
    {"log", natural_logarithm},
    {"erf", polynomial<math::ErfOp>},
    {"tanh", polynomial<math::TanhOp>},
});

}  // namespace

Value device_function(code_builder& code, std::string_view name, std::span<const Value> operands) {
  auto found = std::ranges::find(functions, name, &function_row::name);
  if (found == functions.end() || !code_builder::scalar_of(operands[0]).isF32())
    throw error(error_kind::unsupported, std::string(code.on.name) + " code generation has no " + std::string(name) + " of this type yet");
  return found->build(code, operands);
}

}  // namespace kiln::gpu
