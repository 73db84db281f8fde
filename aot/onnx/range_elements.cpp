#include "aot/onnx/range_elements.hpp"

namespace kiln::onnx_import {
namespace {

constexpr int deepest = 32;

// Types that hold every index that occurs.
bool is_wide(element_type type) {
  using enum element_type;
  return type == i32 || type == i64 || type == f32 || type == f64;
}

std::optional<dim> element_at(const builder& b, value v, const dim& index, int depth);

std::optional<dim> element_of_joined(const builder& b, const std::vector<value>& parts, dim index, int depth) {
  for (value part : parts) {
    const dim length = part.type().dims[0];
    if (b.facts().at_least(length, index + dim(1))) return element_at(b, part, index, depth);
    if (!b.facts().at_least(index, length)) return std::nullopt;
    index = index - length;
  }
  return std::nullopt;
}

std::optional<dim> element_at(const builder& b, value v, const dim& index, int depth) {
  if (auto each = b.uniform(v)) return each;
  if (depth == 0 || v.type().rank() != 1 || !is_wide(v.type().type)) return std::nullopt;
  const operation& op = v.producer->op();
  const auto& inputs = v.producer->inputs();
  if (op.is<iota>()) return index;
  if (op.is<convert>()) return element_at(b, inputs[0], index, depth - 1);
  if (const auto* s = op.get_if<slice>(); s && s->starts[0] >= 0)
    return element_at(b, inputs[0], dim(s->starts[0]) + dim(s->steps[0]) * index, depth - 1);
  if (op.is<concat>()) return element_of_joined(b, inputs, index, depth - 1);
  const auto* e = op.get_if<elementwise>();
  if (!e || inputs.size() != 2) return std::nullopt;
  // One operand is a number, so that a single way leads to the range.
  if (!b.uniform(inputs[0]) && !b.uniform(inputs[1])) return std::nullopt;
  const auto left = element_at(b, inputs[0], index, depth - 1), right = element_at(b, inputs[1], index, depth - 1);
  if (!left || !right) return std::nullopt;
  switch (e->function) {
    case scalar_function::add: return *left + *right;
    case scalar_function::sub: return *left - *right;
    case scalar_function::mul: return *left * *right;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<known_elements> elements_of_range(const builder& b, value vector, const known_elements& indices) {
  if (vector.type().rank() != 1) return std::nullopt;
  known_elements result;
  for (const dim& index : indices) {
    if (!index.is_static()) return std::nullopt;
    const dim from_start = index.value() < 0 ? vector.type().dims[0] + index : index;
    auto element = element_at(b, vector, from_start, deepest);
    if (!element) return std::nullopt;
    result.push_back(*element);
  }
  return result;
}

}  // namespace kiln::onnx_import
