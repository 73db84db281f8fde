#include "aot/onnx/fractions.hpp"

#include <bit>
#include <cmath>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

// f32 computes with such a fraction without rounding, as sizes are small against 2^24.
bool is_exact(const fraction& x) {
  constexpr std::int64_t most = 256;
  return x.under.is_static() && x.under.value() <= most &&
         std::has_single_bit(static_cast<std::uint64_t>(x.under.value()));
}

fraction reduced(const fraction& x) {
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

std::optional<fraction> rounded_down(const fraction& x, const dim_facts& facts) {
  if (x.under == dim(1)) return x;
  return facts.at_least(x.over, 0) ? std::optional(fraction{x.over / x.under, 1}) : std::nullopt;
}

std::optional<fraction> apply(scalar_function f, std::span<const fraction> x, const dim_facts& facts) {
  if (f == scalar_function::floor) return rounded_down(x[0], facts);
  if (f == scalar_function::ceil) return rounded_down({x[0].over + x[0].under - dim(1), x[0].under}, facts);
  for (const fraction& operand : x)
    if (!is_exact(operand)) return std::nullopt;
  switch (f) {
    case scalar_function::add: return sum(x[0], x[1], 1);
    case scalar_function::sub: return sum(x[0], x[1], -1);
    case scalar_function::mul: return exact({x[0].over * x[1].over, x[0].under * x[1].under});
    case scalar_function::div: return quotient(x[0], x[1], facts);
    case scalar_function::neg: return fraction{dim(0) - x[0].over, x[0].under};
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
      if (!is_data && !(x.over.is_static() && x.under == dim(1))) return std::nullopt;
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

std::optional<known_fractions> evaluate(const operation& op, std::span<const shape> inputs,
                                        std::span<const known_fractions> values, const shape& output,
                                        const dim_facts& facts) {
  if (op.is<reshape>() || op.is<transpose>() || op.is<slice>() || op.is<broadcast>() || op.is<gather>() ||
      op.is<concat>())
    return move(op, inputs, values);
  known_fractions result;
  if (const auto* c = op.get_if<convert>()) {
    if (c->type == element_type::f32 || c->type == element_type::f64) return values[0];
    if (c->type != element_type::i32 && c->type != element_type::i64) return std::nullopt;
    for (const fraction& x : values[0]) {
      auto whole = rounded_down(x, facts);
      if (!whole) return std::nullopt;
      result.push_back(*whole);
    }
    return result;
  }
  const auto* e = op.get_if<elementwise>();
  if (!e || !is_float(output.type)) return std::nullopt;
  for (std::size_t i = 0, count = static_cast<std::size_t>(output.element_count()); i < count; ++i) {
    std::vector<fraction> operands;
    for (const auto& v : values) operands.push_back(v.at(i));
    auto element = apply(e->function, operands, facts);
    if (!element) return std::nullopt;
    result.push_back(*element);
  }
  return result;
}

}  // namespace

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
    if (!(std::abs(scaled) < most * parts) || scaled != std::trunc(scaled)) return std::nullopt;
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
    if (!(x.under == dim(1))) return std::nullopt;
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
