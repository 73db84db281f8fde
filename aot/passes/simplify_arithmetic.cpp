#include "aot/passes/simplify_arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"

namespace kiln {
namespace {

using enum scalar_function;
using match::any;
using match::function;

match::matcher number(double n) {
  return any().when([n](value v) { return is_splat(v, n); });
}
match::matcher fixed() { return any().when(is_constant_like); }
match::matcher varying() {
  return any().when([](value v) { return !is_constant_like(v); });
}
match::matcher floating(scalar_function f) {
  return function(f).when([](value v) { return is_float(v.producer->inputs()[0]); });
}

// Replaces the root by a captured value.
auto keep(std::string name) {
  return [name](rewriter&, value, const match::captures& found) { return found[name]; };
}
// Replaces the root by a function of one captured value.
auto become(scalar_function f, std::string name) {
  return [f, name](rewriter& write, value, const match::captures& found) { return write.apply(f, {found[name]}); };
}

// If all operands are broadcasts (or constants that can be broadcast), computes on the values behind them.
value behind_broadcasts(rewriter& write, value root, const match::captures&) {
  const auto& inputs = root.producer->inputs();
  const auto& wanted = root.type().dims;
  std::vector<value> sources;
  std::vector<dim> dims;
  for (value v : inputs) {
    if (!v.producer->op().is<broadcast>()) return {};
    value source = v.producer->inputs()[0];
    const auto& own = source.type().dims;
    std::size_t rank = std::max(dims.size(), own.size());
    auto a = padded_dims(dims, rank), b = padded_dims(own, rank);
    dims.clear();
    for (std::size_t i = 0; i < rank; ++i) dims.push_back(a[i] == dim(1) ? b[i] : a[i]);
    sources.push_back(source);
  }
  if (dims == wanted) return {};
  for (value& source : sources) source = write.broadcast_to(source, dims);
  return write.broadcast_to(write.add(root.producer->op(), sources), wanted);
}

// Whether a comparison of `x` with 0 only chooses between multiples of x, as LeakyRelu is written: the choice does not
// matter near 0.
bool chooses_multiples(const instruction& comparison, value x) {
  const auto& sides = comparison.inputs();
  if (std::ranges::none_of(sides, [](value v) { return splat_of(v) == 0.0; })) return false;
  auto is_multiple = [&](value v) {
    const auto* e = v.producer->op().get_if<elementwise>();
    return v == x || splat_of(v) == 0.0 ||
           (e && e->function == mul && std::ranges::count(v.producer->inputs(), x) == 1);
  };
  return std::ranges::all_of(comparison.users(), [&](const instruction* user) {
    const auto* e = user->op().get_if<elementwise>();
    return e && e->function == where && user->inputs()[0].producer == &comparison && is_multiple(user->inputs()[1]) &&
           is_multiple(user->inputs()[2]);
  });
}

// Whether a small error of `x` may become a large one: x reaches an operation that jumps (floor, a comparison, a
// conversion to indices) through operations that keep exact numbers exact. `round` is none: its jumps lie between the
// numbers that are exact. A conversion to floats of 8 bits is one: a scaled float of 8 bits often lies in the middle of
// two others.
bool reaches_a_jump(value x) {
  constexpr std::size_t most = 64;
  std::vector<value> seen{x};
  for (std::size_t at = 0; at < seen.size(); ++at) {
    if (seen.size() > most) return true;
    for (instruction* user : seen[at].producer->users()) {
      const operation& op = user->op();
      if (const auto* c = op.get_if<convert>()) {
        if (!is_float(c->type) && storage_bits(c->type) >= 32) return true;
        if (is_float(c->type) && storage_bits(c->type) <= 8) return true;
        if (!is_float(c->type)) continue;
      } else if (const auto* e = op.get_if<elementwise>()) {
        switch (e->function) {
          case floor:
          case ceil:
          case mod:
          case fmod:
          case equal: return true;
          case less:
          case less_equal:
          case greater:
          case greater_equal:
            if (!chooses_multiples(*user, seen[at])) return true;
            continue;
          case add:
          case sub:
          case mul:
          case div:
          case min:
          case max:
          case abs:
          case neg:
          case relu:
          case where:
          case clamp: break;
          default: continue;
        }
      } else if (!op.is<reshape>() && !op.is<broadcast>() && !op.is<transpose>() && !op.is<slice>() &&
                 !op.is<concat>() && !op.is<gather>()) {
        continue;
      }
      if (const value next{user, 0}; std::ranges::find(seen, next) == seen.end()) seen.push_back(next);
    }
  }
  return false;
}

// ((y ∘ c1) ∘ c2) → y ∘ (c1 ∘ c2), for sums and products of floats. The rounding may change, so not
// where a jump follows.
rule merged_chain(scalar_function f) {
  return {"merged_chain",
          floating(f).inputs(
              {function(f).single_use().inputs({varying().as("y"), fixed().as("first")}), fixed().as("second")}),
          [f](rewriter& write, value root, const match::captures& found) -> value {
            if (reaches_a_jump(root)) return {};
            return write.apply(f, {found["y"], write.apply(f, {found["first"], found["second"]})});
          }};
}

// x / c → x * (1/c) for a constant divisor whose reciprocal is a normal number. Where the result must be exact, only
// for powers of two: 41 * (1/41) is less than 1. One number alone is divided, because that costs nothing: the scale
// that a model computes for its quantized tensors is one, and its last bit decides about steps.
value multiply_by_reciprocal(rewriter& write, value root, const match::captures& found) {
  value divisor = found["c"];
  while (!module::constant(divisor)) divisor = divisor.producer->inputs()[0];
  const literal& data = *module::constant(divisor);
  if (data.type().type != element_type::f32 && data.type().type != element_type::f64) return {};
  if (data.type().element_count() > 1 << 20) return {};
  bool exact = true;
  for (double d : data.to_doubles()) {
    if (!std::isnormal(d) || std::abs(d) < 1e-30 || std::abs(d) > 1e30) return {};
    int exponent = 0;
    exact &= std::abs(std::frexp(d, &exponent)) == 0.5;
  }
  if (!exact && (root.type().elements() == dim(1) || reaches_a_jump(root))) return {};
  return write.apply(mul, {found["x"], write.apply(reciprocal, {found["c"]})});
}

// convert(convert(x)) → convert(x) if the inner conversion is lossless.
value direct_conversion(rewriter& write, value root, const match::captures& found) {
  element_type from = found["x"].type().type, between = found["inner"].type().type, to = root.type().type;
  auto float_digits = [](element_type t) {
    switch (t) {
      case element_type::f64: return 53;
      case element_type::f32: return 24;
      case element_type::f16: return 11;
      case element_type::bf16: return 8;
      default: return 0;
    }
  };
  auto integer_digits = [](element_type t) {
    return t == element_type::boolean ? 1 : is_signed_integer(t) ? storage_bits(t) - 1 : storage_bits(t);
  };
  bool exact = false;
  if (is_float(from) && is_float(between))
    exact = float_digits(from) > 0 && (between == element_type::f64 || between == element_type::f32 || from == between);
  else if (!is_float(from) && is_float(between)) exact = float_digits(between) >= integer_digits(from);
  else if (!is_float(from) && !is_float(between) && between != element_type::boolean)
    exact = integer_digits(between) >= integer_digits(from) && (!is_signed_integer(from) || is_signed_integer(between));
  return exact ? write.convert_to(found["x"], to) : value{};
}

// log(1 + e^x) as the importer writes it, without an overflow.
match::matcher softplus_of(std::string name) {
  const match::matcher decay =
      function(exp).inputs({function(neg).inputs({function(abs).inputs({match::same(name)})})});
  return function(add).commuted(function(relu).inputs({any().as(name)}),
                                function(log).inputs({function(add).commuted(decay, number(1))}));
}

// tanh(log(1 + e^x)), the factor of Mish, is n / (n + 2) with n = e^x (e^x + 2): one exponential and a quotient. From
// x = 20 on it is 1, because n + 2 rounds to n.
value tanh_of_softplus(rewriter& write, value root, const match::captures& found) {
  constexpr double rounds_to_one = 20;
  const shape& type = root.type();
  if (type.type != element_type::f32 && type.type != element_type::f64) return {};
  const value two = write.splat(type, 2),
              power = write.apply(exp, {write.apply(min, {found["x"], write.splat(type, rounds_to_one)})}),
              n = write.apply(mul, {power, write.apply(add, {power, two})});
  return write.apply(div, {n, write.apply(add, {n, two})});
}

value chosen_side(rewriter&, value, const match::captures& found) {
  return found[*splat_of(found["c"]) != 0 ? "a" : "b"];
}

std::vector<rule> make_rules() {
  auto x = any().as("x");
  std::vector<rule> rules{
      {"add_zero", function(add).commuted(x, number(0)), keep("x")},
      {"sub_zero", function(sub).inputs({x, number(0)}), keep("x")},
      {"mul_one", function(mul).commuted(x, number(1)), keep("x")},
      {"div_one", function(div).inputs({x, number(1)}), keep("x")},
      {"pow_one", function(pow).inputs({x, number(1)}), keep("x")},
      {"pow_two", floating(pow).inputs({x, number(2)}),
       [](rewriter& write, value, const match::captures& found) { return write.apply(mul, {found["x"], found["x"]}); }},
      {"pow_half", floating(pow).inputs({x, number(0.5)}), become(sqrt, "x")},
      {"pow_minus_half", floating(pow).inputs({x, number(-0.5)}), become(rsqrt, "x")},
      {"pow_minus_one", floating(pow).inputs({x, number(-1)}), become(reciprocal, "x")},
      {"one_over", floating(div).inputs({number(1), x}), become(reciprocal, "x")},
      {"one_over_sqrt", function(reciprocal).inputs({function(sqrt).inputs({x})}), become(rsqrt, "x")},
      {"neg_neg", function(neg).inputs({function(neg).inputs({x})}), keep("x")},
      {"mul_minus_one", floating(mul).commuted(x, number(-1)), become(neg, "x")},
      {"add_neg", function(add).commuted(x, function(neg).inputs({varying().as("y")})),
       [](rewriter& write, value, const match::captures& found) { return write.apply(sub, {found["x"], found["y"]}); }},
      {"sub_neg", function(sub).inputs({x, function(neg).inputs({any().as("y")})}),
       [](rewriter& write, value, const match::captures& found) { return write.apply(add, {found["x"], found["y"]}); }},
      {"tanh_of_softplus", function(tanh).inputs({softplus_of("x")}), tanh_of_softplus},
      {"max_zero", floating(max).commuted(x, number(0)), become(relu, "x")},
      {"relu_relu", function(relu).inputs({function(relu).as("x")}), keep("x")},
      {"abs_abs", function(abs).inputs({function(abs).as("x")}), keep("x")},
      {"not_not", function(logical_not).inputs({function(logical_not).inputs({x})}), keep("x")},
      {"and_true", function(logical_and).commuted(x, number(1)), keep("x")},
      {"and_false", function(logical_and).commuted(any(), number(0).as("x")), keep("x")},
      {"or_false", function(logical_or).commuted(x, number(0)), keep("x")},
      {"or_true", function(logical_or).commuted(any(), number(1).as("x")), keep("x")},
      {"and_self", match::either({function(logical_and), function(logical_or)}).inputs({x, match::same("x")}),
       keep("x")},
      {"where_fixed",
       function(where).inputs(
           {any().when([](value v) { return splat_of(v).has_value(); }).as("c"), any().as("a"), any().as("b")}),
       chosen_side},
      {"where_same", function(where).inputs({any(), x, match::same("x")}), keep("x")},
      {"where_not", function(where).inputs({function(logical_not).inputs({x}), any().as("a"), any().as("b")}),
       [](rewriter& write, value, const match::captures& found) {
         return write.apply(where, {found["x"], found["b"], found["a"]});
       }},
      {"sub_fixed", floating(sub).inputs({varying().as("x"), fixed().as("c")}),
       [](rewriter& write, value, const match::captures& found) {
         return write.apply(add, {found["x"], write.apply(neg, {found["c"]})});
       }},
      {"div_fixed", floating(div).inputs({varying().as("x"), fixed().as("c")}), multiply_by_reciprocal},
      merged_chain(add),
      merged_chain(mul),
      {"convert_same", match::op<convert>().inputs({x}).when([](value v) {
         return v.type().type == v.producer->inputs()[0].type().type;
       }),
       keep("x")},
      {"convert_convert", match::op<convert>().inputs({match::op<convert>().inputs({x}).as("inner")}),
       direct_conversion},
      {"behind_broadcasts", any().when([](value v) { return keeps_indices(v.producer->op()); }), behind_broadcasts},
  };
  // Moves constants to the right.
  for (scalar_function f : {add, mul, min, max, equal, logical_and, logical_or, logical_xor})
    rules.push_back({"constant_right", function(f).inputs({fixed().as("c"), varying().as("x")}),
                     [f](rewriter& write, value, const match::captures& found) {
                       return write.apply(f, {found["x"], found["c"]});
                     }});
  return rules;
}

}  // namespace

bool simplify_arithmetic::apply(module& m) const {
  static const std::vector<rule> rules = make_rules();
  return apply_rules(m, rules, log, name());
}

}  // namespace kiln
