#include "aot/onnx/fractions.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

constexpr std::size_t most_real_steps = 64;

// f32 computes with such a fraction without rounding, as sizes are small against 2^24.
bool is_exact(const fraction& x) {
  constexpr std::int64_t most = 256;
  return !x.rounded && x.under.is_static() && x.under.value() <= most &&
         std::has_single_bit(static_cast<std::uint64_t>(x.under.value()));
}

fraction reduced(const fraction& x) {
  if (x.rounded) return x;
  if (dim whole; divides_exactly(x.over, x.under, whole)) return {whole, 1};
  return x;
}

std::optional<fraction> exact(const fraction& x) {
  fraction result = reduced(x);
  return is_exact(result) ? std::optional(result) : std::nullopt;
}

std::optional<fraction> sum(const fraction& a, const fraction& b, std::int64_t sign) {
  return exact({a.over * b.under + dim(sign) * b.over * a.under, a.under * b.under});
}

// For integers below 2^24, rounding a / b to f32 changes neither its floor nor its ceiling. If a / b is an integer, it
// is represented exactly. Otherwise its distance from every integer is at least 1 / b, which is more than the rounding
// error.
std::optional<fraction> quotient(const fraction& a, const fraction& b, const dim_facts& facts) {
  if (!facts.at_least(b.over, 1)) return std::nullopt;
  fraction result = reduced({a.over * b.under, a.under * b.over});
  bool of_integers = a.under == dim(1) && b.under == dim(1);
  return of_integers || is_exact(result) ? std::optional(result) : std::nullopt;
}

// A size, converted to f32.
real_number real_of(const dim& size) {
  if (size.is_static()) return {{{real_step::kind::number, 0, static_cast<float>(size.value())}}, {}};
  return {{{real_step::kind::size, 0, 0}}, {size}};
}

// Appends the steps of `b` to those of `a`. Operands that both share are kept once, so the steps of `b` are renumbered.
void append(real_number& a, const real_number& b) {
  for (real_step step : b.steps) {
    if (step.is == real_step::kind::size) {
      const dim& size = b.operands.at(step.operand);
      const auto found = std::ranges::find(a.operands, size);
      step.operand = static_cast<std::uint32_t>(found - a.operands.begin());
      if (found == a.operands.end()) a.operands.push_back(size);
    }
    a.steps.push_back(step);
  }
}

real_number real_of(const fraction& x) {
  if (x.rounded) return *x.rounded;
  real_number result = real_of(x.over);
  if (x.under == dim(1)) return result;
  append(result, real_of(x.under));
  result.steps.push_back({real_step::kind::div});
  return result;
}

std::optional<fraction> in_steps(real_step::kind is, std::span<const fraction> x) {
  real_number result = real_of(x[0]);
  for (const fraction& operand : x.subspan(1)) append(result, real_of(operand));
  result.steps.push_back({is});
  if (result.steps.size() > most_real_steps) return std::nullopt;
  return fraction{0, 1, std::move(result)};
}

std::optional<fraction> rounded_down(const fraction& x, const dim_facts& facts) {
  if (x.rounded) return fraction{dim::floor_of_real(x.rounded->steps, x.rounded->operands), 1};
  if (x.under == dim(1)) return x;
  return facts.at_least(x.over, 0) ? std::optional(fraction{x.over / x.under, 1}) : std::nullopt;
}

std::optional<fraction> to_integer(real_step::kind is, const fraction& x, const dim_facts& facts) {
  if (!x.rounded && x.under == dim(1)) return x;
  if (!x.rounded && is == real_step::kind::floor) return rounded_down(x, facts);
  if (!x.rounded && is == real_step::kind::ceil) return rounded_down({x.over + x.under - dim(1), x.under}, facts);
  auto steps = in_steps(is, std::span(&x, 1));
  return steps ? rounded_down(*steps, facts) : std::nullopt;
}

// Returns nullopt if rounding in f32 matters.
std::optional<fraction> without_rounding(scalar_function f, std::span<const fraction> x, const dim_facts& facts) {
  for (const fraction& operand : x)
    if (!is_exact(operand)) return std::nullopt;
  switch (f) {
    case scalar_function::add: return sum(x[0], x[1], 1);
    case scalar_function::sub: return sum(x[0], x[1], -1);
    case scalar_function::mul: return exact({x[0].over * x[1].over, x[0].under * x[1].under});
    case scalar_function::div: return quotient(x[0], x[1], facts);
    case scalar_function::reciprocal: return quotient({1, 1}, x[0], facts);
    case scalar_function::neg: return fraction{dim(0) - x[0].over, x[0].under};
    default: return std::nullopt;
  }
}

// Powers that models write for products and roots: Pow(size, 0.5) is the side of a square of patches.
std::optional<fraction> power(std::span<const fraction> x) {
  const fraction exponent = reduced(x[1]);
  if (exponent.rounded || !exponent.over.is_static() || !exponent.under.is_static()) return std::nullopt;
  const std::int64_t over = exponent.over.value(), under = exponent.under.value();
  if (over == 1 && under == 1) return x[0];
  if (over == 1 && under == 2) return in_steps(real_step::kind::sqrt, x.first(1));
  if (over == 2 && under == 1) {
    if (is_exact(x[0])) return exact({x[0].over * x[0].over, x[0].under * x[0].under});
    return in_steps(real_step::kind::mul, std::array{x[0], x[0]});
  }
  return std::nullopt;
}

std::optional<fraction> apply(scalar_function f, std::span<const fraction> x, element_type type,
                              const dim_facts& facts) {
  using kind = real_step::kind;
  if (f == scalar_function::floor) return to_integer(kind::floor, x[0], facts);
  if (f == scalar_function::ceil) return to_integer(kind::ceil, x[0], facts);
  if (auto result = without_rounding(f, x, facts)) return result;
  if (type != element_type::f32) return std::nullopt;
  const fraction one{1, 1}, zero{0, 1};
  switch (f) {
    case scalar_function::round: return to_integer(kind::round, x[0], facts);
    case scalar_function::add: return in_steps(kind::add, x);
    case scalar_function::sub: return in_steps(kind::sub, x);
    case scalar_function::mul: return in_steps(kind::mul, x);
    case scalar_function::div: return in_steps(kind::div, x);
    case scalar_function::min: return in_steps(kind::minimum, x);
    case scalar_function::max: return in_steps(kind::maximum, x);
    case scalar_function::sqrt: return in_steps(kind::sqrt, x);
    case scalar_function::pow: return power(x);
    case scalar_function::reciprocal: return in_steps(kind::div, std::array{one, x[0]});
    case scalar_function::neg: return in_steps(kind::sub, std::array{zero, x[0]});
    default: return std::nullopt;
  }
}

// Operations that only move elements are evaluated on the elements' positions.
std::optional<known_fractions> move(const operation& op, std::span<const shape> inputs,
                                    std::span<const known_fractions> values) {
  std::vector<literal> arguments;
  known_fractions pool;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::int64_t> positions;
    bool is_data = i == 0 || op.is<concat>();
    for (const fraction& x : values[i]) {
      if (!is_data && !(!x.rounded && x.over.is_static() && x.under == dim(1))) return std::nullopt;
      positions.push_back(is_data ? static_cast<std::int64_t>(pool.size()) : x.over.value());
      if (is_data) pool.push_back(x);
    }
    arguments.push_back(literal::of({element_type::i64, inputs[i].dims}, positions));
  }
  known_fractions result;
  for (std::int64_t position : op.evaluate(arguments)[0].to_int64())
    result.push_back(pool.at(static_cast<std::size_t>(position)));
  return result;
}

// A reduction over all elements, as in Min(64 / height, 64 / width) written as ReduceMin.
std::optional<known_fractions> reduce_all(const reduce& op, const known_fractions& elements, const shape& output,
                                          const dim_facts& facts) {
  std::optional<scalar_function> combine;
  if (op.kind == reduction_kind::min) combine = scalar_function::min;
  if (op.kind == reduction_kind::max) combine = scalar_function::max;
  // The order of more than two terms would matter, because f32 rounds each step.
  if (op.kind == reduction_kind::sum && elements.size() <= 2) combine = scalar_function::add;
  if (op.kind == reduction_kind::product && elements.size() <= 2) combine = scalar_function::mul;
  if (!combine || elements.empty() || output.element_count() != 1) return std::nullopt;
  fraction result = elements.front();
  for (const fraction& next : std::span(elements).subspan(1)) {
    auto both = apply(*combine, std::array{result, next}, output.type, facts);
    if (!both) return std::nullopt;
    result = std::move(*both);
  }
  return known_fractions{std::move(result)};
}

std::optional<known_fractions> evaluate(const operation& op, std::span<const shape> inputs,
                                        std::span<const known_fractions> values, const shape& output,
                                        const dim_facts& facts) {
  if (op.is<reshape>() || op.is<transpose>() || op.is<slice>() || op.is<broadcast>() || op.is<gather>() ||
      op.is<concat>())
    return move(op, inputs, values);
  known_fractions result;
  if (const auto* c = op.get_if<convert>()) {
    if (c->type == inputs[0].type) return values[0];
    if (c->type == element_type::f32 || c->type == element_type::f64) {
      // Steps are on f32 numbers only.
      if (std::ranges::any_of(values[0], [](const fraction& x) { return x.rounded.has_value(); })) return std::nullopt;
      return values[0];
    }
    if (c->type != element_type::i32 && c->type != element_type::i64) return std::nullopt;
    for (const fraction& x : values[0]) {
      auto whole = rounded_down(x, facts);
      if (!whole || (x.rounded && !facts.at_least(whole->over, 0))) return std::nullopt;  // conversion truncates
      result.push_back(*whole);
    }
    return result;
  }
  if (!is_float(output.type)) return std::nullopt;
  if (const auto* r = op.get_if<reduce>()) return reduce_all(*r, values[0], output, facts);
  const auto* e = op.get_if<elementwise>();
  if (!e) return std::nullopt;
  for (std::size_t i = 0, count = static_cast<std::size_t>(output.element_count()); i < count; ++i) {
    std::vector<fraction> operands;
    for (const auto& v : values) operands.push_back(v.at(i));
    auto element = apply(e->function, operands, output.type, facts);
    if (!element) return std::nullopt;
    result.push_back(*element);
  }
  return result;
}

}  // namespace

dim scaled_size(const dim& size, const fraction& scale) {
  real_number product = real_of(size);
  append(product, real_of(scale));
  product.steps.push_back({real_step::kind::mul});
  return dim::floor_of_real(std::move(product.steps), std::move(product.operands));
}

known_fractions fractions_of(const known_elements& elements) {
  known_fractions result;
  for (const dim& d : elements) result.push_back({d, 1});
  return result;
}

std::optional<known_fractions> fractions_of(const literal& data) {
  if (!is_float(data.type().type) || data.type().element_count() > max_known_elements) return std::nullopt;
  constexpr std::int64_t parts = 256, most = 1 << 16, most_over = 1 << 12;
  known_fractions result;
  for (std::int64_t i = 0, n = data.type().element_count(); i < n; ++i) {
    const double scaled = data.at(i) * parts;
    const bool small = std::abs(scaled) < most * parts && scaled == std::trunc(scaled);
    if (!small) {
      if (data.type().type != element_type::f32 || !std::isfinite(scaled)) return std::nullopt;
      const auto number = static_cast<float>(data.at(i));
      result.push_back({0, 1, real_number{{{real_step::kind::number, 0, number}}, {}}});
      continue;
    }
    std::int64_t over = static_cast<std::int64_t>(scaled), under = parts;
    for (; under > 1 && over % 2 == 0; under /= 2) over /= 2;
    if (under > 1 && std::abs(over) > most_over) return std::nullopt;
    result.push_back({over, under});
  }
  return result;
}

std::optional<known_elements> integers_of(const known_fractions& fractions) {
  known_elements result;
  for (const fraction& x : fractions) {
    if (x.rounded || !(x.under == dim(1))) return std::nullopt;
    result.push_back(x.over);
  }
  return result;
}

std::optional<known_fractions> evaluate_fractions(const operation& op, std::span<const shape> inputs,
                                                  std::span<const known_fractions> values, const shape& output,
                                                  const dim_facts& facts) {
  try {
    if (inputs.empty() || !output.is_static() || output.element_count() > max_known_elements) return std::nullopt;
    return evaluate(op, inputs, values, output, facts);
  } catch (const error&) {
    // Overflow or an index out of range: the result is unknown.
    return std::nullopt;
  }
}

}  // namespace kiln::onnx_import
