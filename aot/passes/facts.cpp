#include "aot/passes/facts.hpp"

#include <algorithm>

namespace kiln {

std::optional<double> splat_of(value v) {
  for (;;) {
    if (const literal* data = module::constant(v)) return data->splat();
    const operation& op = v.producer->op();
    if (!op.is<broadcast>() && !op.is<reshape>() && !op.is<transpose>() && !op.is<slice>()) return std::nullopt;
    v = v.producer->inputs()[0];
  }
}

bool is_splat(value v, double number) { return splat_of(v) == number; }

bool is_constant_like(value v) {
  for (;;) {
    const operation& op = v.producer->op();
    if (op.is<constant>()) return true;
    if (!op.is<broadcast>() && !op.is<reshape>() && !op.is<transpose>()) return false;
    v = v.producer->inputs()[0];
  }
}

literal evaluate_constant_like(value v) {
  if (const literal* data = module::constant(v)) return *data;
  std::vector<literal> inputs;
  for (value input : v.producer->inputs()) inputs.push_back(evaluate_constant_like(input));
  return v.producer->op().evaluate(inputs)[v.index];
}

bool is_float(value v) { return is_float(v.type().type); }

std::optional<scalar_function> function_of(value v) {
  const auto* e = v.producer->op().get_if<elementwise>();
  return e ? std::optional(e->function) : std::nullopt;
}

bool is_function(value v, scalar_function f) { return function_of(v) == f; }

bool has_single_use(const module& m, value v) {
  auto outputs =
      std::count_if(m.outputs().begin(), m.outputs().end(), [&](value o) { return o.producer == v.producer; });
  return v.producer->users().size() + static_cast<std::size_t>(outputs) == 1;
}

std::vector<dim> padded_dims(const std::vector<dim>& dims, std::size_t rank) {
  std::vector<dim> padded(rank - dims.size(), dim(1));
  padded.insert(padded.end(), dims.begin(), dims.end());
  return padded;
}

value along_one_axis(value v, std::size_t axis) {
  std::size_t rank = v.type().rank();
  while (v.producer->op().is<broadcast>()) v = v.producer->inputs()[0];
  const auto& dims = v.type().dims;
  if (dims.size() > rank) return {};
  std::size_t lead = rank - dims.size();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (i + lead != axis && !(dims[i] == dim(1))) return {};
  return v;
}

std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& permutation) {
  std::vector<std::int64_t> result(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  return result;
}

bool is_identity(const std::vector<std::int64_t>& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end());
}

std::vector<dim> permute(const std::vector<dim>& dims, const std::vector<std::int64_t>& permutation) {
  std::vector<dim> result;
  for (std::int64_t axis : permutation) result.push_back(dims[static_cast<std::size_t>(axis)]);
  return result;
}

bool moves_nothing(const std::vector<dim>& dims, const std::vector<std::int64_t>& permutation) {
  std::int64_t last = -1;
  for (std::int64_t axis : permutation) {
    if (dims[static_cast<std::size_t>(axis)] == dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

}  // namespace kiln
