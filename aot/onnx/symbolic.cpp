#include "aot/onnx/symbolic.hpp"

#include <cmath>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

// Operations that only move elements; all but the named input count of `data` inputs are indices and must be numbers.
enum class data_inputs { first, all };
std::optional<data_inputs> mover(const operation& op) {
  if (op.is<reshape>() || op.is<transpose>() || op.is<slice>() || op.is<broadcast>() || op.is<gather>() || op.is<gather_elements>() || op.is<gather_nd>()) return data_inputs::first;
  if (op.is<concat>()) return data_inputs::all;
  return std::nullopt;
}

// Runs a mover on positions instead of elements, and looks the positions up.
std::optional<known_elements> move(const operation& op, data_inputs which, std::span<const shape> inputs, std::span<const known_elements> values) {
  std::vector<literal> arguments;
  known_elements pool;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::int64_t> elements;
    bool is_data = i == 0 || which == data_inputs::all;
    for (const dim& d : values[i]) {
      if (!is_data && !d.is_static()) return std::nullopt;
      elements.push_back(is_data ? static_cast<std::int64_t>(pool.size()) : d.value());
      if (is_data) pool.push_back(d);
    }
    arguments.push_back(literal::of({element_type::i64, inputs[i].dims}, elements));
  }
  known_elements result;
  for (std::int64_t position : op.evaluate(arguments)[0].to_int64()) result.push_back(pool.at(static_cast<std::size_t>(position)));
  return result;
}

bool is_symbol(const dim& d) {
  auto symbols = d.symbols();
  return symbols.size() == 1 && *symbols.begin() == d.str();
}

// What a symbol is at least: a count may be zero (counted_dims.hpp).
std::int64_t least(const dim& symbol) { return symbol.str().starts_with(count_prefix) ? 0 : 1; }

// -1, 0, 1 for a < b, a == b, a > b, where the sign follows for every value that the symbols may have.
std::optional<int> compare(const dim& a, const dim& b) {
  if (a == b) return 0;
  dim difference = a - b;
  if (difference.is_static()) return difference.value() < 0 ? -1 : 1;
  if (is_symbol(a) && b.is_static() && b.value() < least(a)) return 1;
  if (is_symbol(b) && a.is_static() && a.value() < least(b)) return -1;
  return std::nullopt;
}

std::optional<dim> quotient(const dim& a, const dim& b, element_type type) {
  if (b == dim(0)) return std::nullopt;
  if (a.is_static() && b.is_static()) {
    if (is_integer(type)) return a.value() / b.value();
    return a.value() % b.value() == 0 ? std::optional<dim>(a.value() / b.value()) : std::nullopt;
  }
  if (b.is_static() && b.value() < 0) return std::nullopt;
  dim result = a / b;
  if (is_float(type) && !(result * b == a)) return std::nullopt;
  return result;
}

std::optional<dim> truth(std::optional<int> order, bool less, bool equal, bool greater) {
  if (!order) return std::nullopt;
  return dim(*order < 0 ? less : *order == 0 ? equal : greater);
}

std::optional<dim> apply(scalar_function f, element_type type, std::span<const dim> x) {
  switch (f) {
    case scalar_function::add: return x[0] + x[1];
    case scalar_function::sub: return x[0] - x[1];
    case scalar_function::mul: return x[0] * x[1];
    case scalar_function::div: return quotient(x[0], x[1], type);
    case scalar_function::neg: return dim(0) - x[0];
    case scalar_function::floor:
    case scalar_function::ceil:
    case scalar_function::round: return x[0];  // all known elements are integers
    case scalar_function::equal: return truth(compare(x[0], x[1]), false, true, false);
    case scalar_function::less: return truth(compare(x[0], x[1]), true, false, false);
    case scalar_function::less_equal: return truth(compare(x[0], x[1]), true, true, false);
    case scalar_function::greater: return truth(compare(x[0], x[1]), false, false, true);
    case scalar_function::greater_equal: return truth(compare(x[0], x[1]), false, true, true);
    case scalar_function::min:
    case scalar_function::max: {
      auto order = compare(x[0], x[1]);
      if (!order && is_symbol(x[0]) && x[1] == dim(least(x[0]))) order = 1;
      if (!order && is_symbol(x[1]) && x[0] == dim(least(x[1]))) order = -1;
      if (!order) return std::nullopt;
      return (*order < 0) == (f == scalar_function::min) ? x[0] : x[1];
    }
    case scalar_function::logical_not: return x[0].is_static() ? std::optional<dim>(x[0] == dim(0)) : std::nullopt;
    case scalar_function::logical_and: return x[0].is_static() && x[1].is_static() ? std::optional<dim>(x[0].value() && x[1].value()) : std::nullopt;
    case scalar_function::logical_or: return x[0].is_static() && x[1].is_static() ? std::optional<dim>(x[0].value() || x[1].value()) : std::nullopt;
    case scalar_function::where: return x[0].is_static() ? std::optional<dim>(x[0].value() ? x[1] : x[2]) : std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<known_elements> map(const elementwise& op, std::span<const known_elements> values, std::size_t count, element_type type) {
  known_elements result;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<dim> operands;
    for (const auto& v : values) operands.push_back(v.at(i));
    auto element = apply(op.function, type, operands);
    if (!element) return std::nullopt;
    result.push_back(*element);
  }
  return result;
}

std::optional<known_elements> cast(element_type to, const known_elements& values) {
  if (is_float(to) ? storage_bits(to) < 32 : storage_bits(to) < 32 && to != element_type::boolean) return std::nullopt;
  if (to != element_type::boolean) return values;
  known_elements result;
  for (const dim& d : values) {
    if (!d.is_static() && !is_symbol(d)) return std::nullopt;
    result.emplace_back(d.is_static() ? d.value() != 0 : 1);
  }
  return result;
}

std::optional<known_elements> combine(const reduce& op, const shape& input, const known_elements& values) {
  if (op.axes.size() != input.rank() || (op.kind != reduction_kind::sum && op.kind != reduction_kind::product)) return std::nullopt;
  dim total = op.kind == reduction_kind::sum ? 0 : 1;
  for (const dim& d : values) total = op.kind == reduction_kind::sum ? total + d : total * d;
  return known_elements{total};
}

std::optional<known_elements> evaluate(const operation& op, std::span<const shape> inputs, std::span<const known_elements> values, const shape& output) {
  if (auto which = mover(op)) return move(op, *which, inputs, values);
  if (const auto* e = op.get_if<elementwise>()) return map(*e, values, static_cast<std::size_t>(output.element_count()), inputs.back().type);
  if (const auto* c = op.get_if<convert>()) return cast(c->type, values[0]);
  if (const auto* r = op.get_if<reduce>()) return combine(*r, inputs[0], values[0]);
  return std::nullopt;
}

}  // namespace

std::optional<known_elements> elements_of(const literal& data) {
  if (data.type().element_count() > max_known_elements) return std::nullopt;
  known_elements result;
  for (std::int64_t i = 0, n = data.type().element_count(); i < n; ++i) {
    if (!is_float(data.type().type)) { result.emplace_back(data.at_int(i)); continue; }
    double x = data.at(i);
    if (!(std::abs(x) < 9007199254740992.0) || x != std::trunc(x)) return std::nullopt;
    result.emplace_back(static_cast<std::int64_t>(x));
  }
  return result;
}

std::optional<known_elements> evaluate_known(const operation& op, std::span<const shape> inputs, std::span<const known_elements> values, const shape& output) {
  try {
    if (inputs.empty() || !output.is_static() || output.element_count() > max_known_elements) return std::nullopt;
    return evaluate(op, inputs, values, output);
  } catch (const error&) {  // overflow, a division without a closed form, an index out of range: not known then
    return std::nullopt;
  }
}

}  // namespace kiln::onnx_import
