#include "aot/onnx/symbolic.hpp"

#include <algorithm>
#include <cmath>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

// Operations that only move elements. The inputs other than the data inputs are indices, which must be numbers.
enum class data_inputs { first, all, first_and_last };
bool is_data(data_inputs which, std::size_t input, std::size_t count) {
  return input == 0 || which == data_inputs::all || (which == data_inputs::first_and_last && input + 1 == count);
}

std::optional<data_inputs> mover(const operation& op) {
  if (op.is<reshape>() || op.is<transpose>() || op.is<slice>() || op.is<broadcast>() || op.is<gather>() ||
      op.is<gather_elements>() || op.is<gather_nd>())
    return data_inputs::first;
  if (op.is<concat>()) return data_inputs::all;
  const auto* elements = op.get_if<scatter_elements>();
  const auto* rows = op.get_if<scatter_nd>();
  const bool writes = (elements && elements->reduction == scatter_reduction::none) ||
                      (rows && rows->reduction == scatter_reduction::none);
  return writes ? std::optional(data_inputs::first_and_last) : std::nullopt;
}

// Runs such an operation on element positions, then looks the positions up.
std::optional<known_elements> move(const operation& op, data_inputs which, std::span<const shape> inputs,
                                   std::span<const known_elements> values) {
  std::vector<literal> arguments;
  known_elements pool;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::int64_t> elements;
    const bool data = is_data(which, i, inputs.size());
    for (const dim& d : values[i]) {
      if (!data && !d.is_static()) return std::nullopt;
      elements.push_back(data ? static_cast<std::int64_t>(pool.size()) : d.value());
      if (data) pool.push_back(d);
    }
    arguments.push_back(literal::of({element_type::i64, inputs[i].dims}, elements));
  }
  known_elements result;
  for (std::int64_t position : op.evaluate(arguments)[0].to_int64())
    result.push_back(pool.at(static_cast<std::size_t>(position)));
  return result;
}

// Integer division, which truncates. floor(a / b) is equal to it only if a is not negative. Sizes for which b is 0 are
// refused when they are known.
std::optional<dim> integer_quotient(const dim& a, const dim& b, const dim_facts& facts) {
  if (b.is_static() && b.value() < 0)
    return b == dim(-1) ? std::optional(dim(0) - a) : integer_quotient(dim(0) - a, dim(0) - b, facts);
  if (dim exact; divides_exactly(a, b, exact)) return exact;
  if (!facts.at_least(b, 0)) return std::nullopt;
  dim negative = dim(0) - a;
  if (facts.at_least(a, 0)) return a / b;
  if (facts.at_least(negative, 0)) return dim(0) - negative / b;
  return facts.max(a / b, 0) - facts.max(negative / b, 0);
}

std::optional<dim> quotient(const dim& a, const dim& b, element_type type, const dim_facts& facts) {
  if (b == dim(0)) return std::nullopt;
  if (!is_float(type)) return integer_quotient(a, b, facts);
  dim exact;
  return divides_exactly(a, b, exact) ? std::optional(exact) : std::nullopt;
}

// The remainder has the sign of the divisor.
std::optional<dim> remainder(const dim& a, const dim& b, element_type type, const dim_facts& facts) {
  if (is_float(type) || b == dim(0) || !facts.at_least(b, 0)) return std::nullopt;
  return a - b * (a / b);
}

// torch's dynamo exporter writes products of equal sizes as powers.
std::optional<dim> power(const dim& base, const dim& exponent) {
  constexpr std::int64_t most = 8;
  if (!exponent.is_static() || exponent.value() < 0 || exponent.value() > most) return std::nullopt;
  dim result = 1;
  for (std::int64_t i = 0; i < exponent.value(); ++i) result = result * base;
  return result;
}

// Comparisons give 1 or 0: static if the bounds decide, else expressions with these values.
dim less(const dim& a, const dim& b, const dim_facts& facts) { return facts.min(facts.max(b - a, 0), 1); }
dim inverse(const dim& truth) { return dim(1) - truth; }
dim differs(const dim& a, const dim& b, const dim_facts& facts) {
  if (auto order = facts.order(a, b)) return *order != 0;
  return facts.min(facts.max(a - b, b - a), 1);
}
dim chosen(const dim& truth, const dim& yes, const dim& no) { return yes == no ? yes : no + truth * (yes - no); }

std::optional<dim> apply(scalar_function f, element_type type, std::span<const dim> x, const dim_facts& facts) {
  switch (f) {
    case scalar_function::add: return x[0] + x[1];
    case scalar_function::sub: return x[0] - x[1];
    case scalar_function::mul: return x[0] * x[1];
    case scalar_function::div: return quotient(x[0], x[1], type, facts);
    case scalar_function::mod: return remainder(x[0], x[1], type, facts);
    case scalar_function::pow: return power(x[0], x[1]);
    case scalar_function::neg: return dim(0) - x[0];
    case scalar_function::abs: return facts.max(x[0], dim(0) - x[0]);
    case scalar_function::relu: return facts.max(x[0], 0);
    case scalar_function::floor:
    case scalar_function::ceil:
    case scalar_function::round: return x[0];  // all known elements are integers
    case scalar_function::equal: return inverse(differs(x[0], x[1], facts));
    case scalar_function::less: return less(x[0], x[1], facts);
    case scalar_function::less_equal: return inverse(less(x[1], x[0], facts));
    case scalar_function::greater: return less(x[1], x[0], facts);
    case scalar_function::greater_equal: return inverse(less(x[0], x[1], facts));
    case scalar_function::min: return facts.min(x[0], x[1]);
    case scalar_function::max: return facts.max(x[0], x[1]);
    case scalar_function::clamp: return facts.min(facts.max(x[0], x[1]), x[2]);
    case scalar_function::logical_not: return inverse(x[0]);
    case scalar_function::logical_and: return x[0] * x[1];
    case scalar_function::logical_or: return x[0] + x[1] - x[0] * x[1];
    case scalar_function::where: return chosen(x[0], x[1], x[2]);
    default: return std::nullopt;
  }
}

std::optional<known_elements> map(const elementwise& op, std::span<const known_elements> values, std::size_t count,
                                  element_type type, const dim_facts& facts) {
  known_elements result;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<dim> operands;
    for (const auto& v : values) operands.push_back(v.at(i));
    auto element = apply(op.function, type, operands, facts);
    if (!element) return std::nullopt;
    result.push_back(*element);
  }
  return result;
}

std::optional<known_elements> cast(element_type to, const known_elements& values, const dim_facts& facts) {
  if (is_float(to) ? storage_bits(to) < 32 : storage_bits(to) < 32 && to != element_type::boolean) return std::nullopt;
  if (to != element_type::boolean) return values;
  known_elements result;
  for (const dim& d : values) {
    result.push_back(differs(d, 0, facts));
  }
  return result;
}

std::optional<dim> combined(reduction_kind kind, const dim& a, const dim& b, const dim_facts& facts) {
  switch (kind) {
    case reduction_kind::sum: return a + b;
    case reduction_kind::product: return a * b;
    case reduction_kind::min: return facts.min(a, b);
    case reduction_kind::max: return facts.max(a, b);
    default: return std::nullopt;
  }
}

// The number of elements between neighbours along each axis.
std::vector<std::int64_t> strides_of(const shape& type) {
  std::vector<std::int64_t> result(type.rank(), 1);
  for (std::size_t k = type.rank(); k-- > 1;) result[k - 1] = result[k] * type.dims[k].value();
  return result;
}

std::optional<known_elements> combine(const reduce& op, const shape& input, const known_elements& values,
                                      std::size_t count, const dim_facts& facts) {
  if (values.empty() && op.kind != reduction_kind::sum && op.kind != reduction_kind::product) return std::nullopt;
  if (values.empty()) return known_elements(count, dim(op.kind == reduction_kind::sum ? 0 : 1));
  const auto strides = strides_of(input);
  std::vector<std::optional<dim>> totals(count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t at = 0;
    for (std::size_t k = 0; k < input.rank(); ++k)
      if (std::ranges::find(op.axes, static_cast<std::int64_t>(k)) == op.axes.end())
        at = at * input.dims[k].value() + static_cast<std::int64_t>(i) / strides[k] % input.dims[k].value();
    auto& total = totals.at(static_cast<std::size_t>(at));
    total = total ? combined(op.kind, *total, values[i], facts) : values[i];
    if (!total) return std::nullopt;
  }
  known_elements result;
  for (const auto& total : totals) result.push_back(total.value());
  return result;
}

known_elements running_sums(const cumulative_sum& op, const shape& input, const known_elements& values) {
  const auto axis = static_cast<std::size_t>(op.axis);
  const std::int64_t stride = strides_of(input)[axis], length = input.dims[axis].value();
  known_elements result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i) / stride % length;
    dim total = 0;
    for (std::int64_t k = 0; k < length; ++k)
      if (op.reverse ? k > place : k < place)
        total = total + values[i + static_cast<std::size_t>((k - place) * stride)];
    result.push_back(op.exclusive ? total : total + values[i]);
  }
  return result;
}

std::optional<known_elements> evaluate(const operation& op, std::span<const shape> inputs,
                                       std::span<const known_elements> values, const shape& output,
                                       const dim_facts& facts) {
  if (auto which = mover(op)) return move(op, *which, inputs, values);
  if (const auto* e = op.get_if<elementwise>())
    return map(*e, values, static_cast<std::size_t>(output.element_count()), inputs.back().type, facts);
  if (const auto* c = op.get_if<convert>()) return cast(c->type, values[0], facts);
  if (const auto* r = op.get_if<reduce>())
    return combine(*r, inputs[0], values[0], static_cast<std::size_t>(output.element_count()), facts);
  if (const auto* c = op.get_if<cumulative_sum>()) return running_sums(*c, inputs[0], values[0]);
  return std::nullopt;
}

}  // namespace

std::optional<known_elements> elements_of(const literal& data) {
  if (data.type().element_count() > max_known_elements) return std::nullopt;
  known_elements result;
  for (std::int64_t i = 0, n = data.type().element_count(); i < n; ++i) {
    if (!is_float(data.type().type)) {
      result.emplace_back(data.at_int(i));
      continue;
    }
    double x = data.at(i);
    if (!(std::abs(x) < 9007199254740992.0) || x != std::trunc(x)) return std::nullopt;
    result.emplace_back(static_cast<std::int64_t>(x));
  }
  return result;
}

std::optional<known_elements> evaluate_known(const operation& op, std::span<const shape> inputs,
                                             std::span<const known_elements> values, const shape& output,
                                             const dim_facts& facts) {
  try {
    if (inputs.empty() || !output.is_static() || output.element_count() > max_known_elements) return std::nullopt;
    return evaluate(op, inputs, values, output, facts);
  } catch (const error&) {
    // Overflow, a division without a closed form, or an index out of range: the result is unknown.
    return std::nullopt;
  }
}

}  // namespace kiln::onnx_import
