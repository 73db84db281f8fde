#include "mlir_bridge/codegen/elementary_functions.hpp"

#include <algorithm>
#include <array>
#include <numbers>

#include "mlir_bridge/codegen/call_intrinsic.hpp"

namespace kiln::codegen {

Value elementary_functions::by_lane(std::span<const Value> operands,
                                    const std::function<Value(std::span<const Value>)>& body) const {
  values results;
  for (std::int64_t i = 0; i < code_builder::lanes_of(operands[0]); ++i) {
    values lane;
    for (Value operand : operands) lane.push_back(b.lane(operand, i));
    results.push_back(body(lane));
  }
  return b.from_lanes(results);
}

Value elementary_functions::each_lane(std::string_view intrinsic, Value x) const {
  return by_lane(std::span(&x, 1),
                 [&](std::span<const Value> lane) { return call_intrinsic(b, intrinsic, lane[0].getType(), lane); });
}

Value elementary_functions::fast_exp(Value x) const { return fast_exp2(mul(x, std::numbers::log2e)); }
Value elementary_functions::fast_log(Value x) const { return mul(each_lane(hardware.log2, x), std::numbers::ln2); }
Value elementary_functions::fast_reciprocal(Value x) const {
  return hardware.reciprocal.empty() ? div(number(x, 1), x) : each_lane(hardware.reciprocal, x);
}

Value elementary_functions::fast_tanh(Value x) const {
  Value a = abs(x), z = mul(x, x);
  Value small = fma(mul(x, z), polynomial(z, {-17.0 / 315, 2.0 / 15, -1.0 / 3}), x);
  Value large = fma(fast_reciprocal(add(fast_exp2(mul(a, 2 * std::numbers::log2e)), 1.0)), -2, number(x, 1));
  return select(less(a, 0.25), small, copy_sign(large, x));
}

namespace {

struct function_row {
  std::string_view name;
  // True if the function also supports f64 operands.
  bool f64;
  Value (*build)(const elementary_functions&, std::span<const Value>);
};

#define UNARY(name) +[](const elementary_functions& m, std::span<const Value> x) { return m.name(x[0]); }
#define BINARY(name) +[](const elementary_functions& m, std::span<const Value> x) { return m.name(x[0], x[1]); }

constexpr auto functions = std::to_array<function_row>({
    {"exp", true, +[](const elementary_functions& m, std::span<const Value> x) { return m.exp(x[0]); }},
    {"exp.flushed", false, UNARY(flushed_exp)},
    {"log", true, UNARY(log)},
    {"pow", true, BINARY(pow)},
    {"tanh", true, UNARY(tanh)},
    {"sinh", true, UNARY(sinh)},
    {"cosh", true, UNARY(cosh)},
    {"asinh", true, UNARY(asinh)},
    {"acosh", true, UNARY(acosh)},
    {"atanh", true, UNARY(atanh)},
    {"fmod", true, BINARY(fmod)},
    {"erf", false, UNARY(erf)},
    {"erf.polynomial", false, UNARY(polynomial_erf)},
    {"sin", false, UNARY(sin)},
    {"cos", false, UNARY(cos)},
    {"tan", false, UNARY(tan)},
    {"asin", false, UNARY(asin)},
    {"acos", false, UNARY(acos)},
    {"atan", false, UNARY(atan)},
    {"exp.fast", false, UNARY(fast_exp)},
    {"exp2.fast", false, UNARY(fast_exp2)},
    {"log.fast", false, UNARY(fast_log)},
    {"tanh.fast", false, UNARY(fast_tanh)},
    {"erf.fast", false, UNARY(fast_erf)},
    {"pow.fast", false, BINARY(fast_pow)},
    {"div.fast", false,
     +[](const elementary_functions& m, std::span<const Value> x) { return m.mul(x[0], m.fast_reciprocal(x[1])); }},
    {"sigmoid.fast", false,
     +[](const elementary_functions& m, std::span<const Value> x) {
       return m.fast_reciprocal(m.add(m.fast_exp(m.neg(x[0])), 1.0));
     }},
});

#undef UNARY
#undef BINARY

}  // namespace

Value elementary_function(code_builder& code, std::string_view name, std::span<const Value> operands,
                          const approximations& hardware) {
  auto found = std::ranges::find(functions, name, &function_row::name);
  bool wide = code_builder::scalar_of(operands[0]).isF64();
  if (found == functions.end() || (wide && !found->f64)) return {};
  return found->build(elementary_functions{code, hardware}, operands);
}

}  // namespace kiln::codegen
