#include "aot/passes/int4_weights.hpp"

#include <algorithm>
#include <array>

#include "ir/ops/all.hpp"

namespace kiln {
namespace {

bool is_packed(element_type type) { return storage_bits(type) < 8; }

// Whether v is computed from constants by the allowed operations. Sets `packed` if one constant has 4 bits for each of
// `elements`.
bool comes_of_constants(value v, const dim& elements, bool& packed) {
  const operation& op = v.producer->op();
  if (op.is<constant>()) {
    packed |= is_packed(v.type().type) && v.type().elements() == elements;
    return true;
  }
  const auto* e = op.get_if<elementwise>();
  // A difference from a number has become a sum (simplify_arithmetic.cpp).
  constexpr std::array functions{scalar_function::mul, scalar_function::sub, scalar_function::add};
  const bool passes = op.is<convert>() || op.is<broadcast>() || op.is<reshape>() ||
                      (e && std::ranges::find(functions, e->function) != functions.end());
  return passes && std::ranges::all_of(v.producer->inputs(),
                                       [&](value input) { return comes_of_constants(input, elements, packed); });
}

}  // namespace

value add_int4_matrix(module& m, instruction* before, const int4_matrix& matrix, const std::vector<dim>& dims) {
  const std::int64_t groups = matrix.depth / matrix.group;
  const bool whole = groups == 1;
  const std::vector<dim> apart =
      whole ? std::vector<dim>{matrix.rows, matrix.depth} : std::vector<dim>{matrix.rows, groups, matrix.group};
  const std::vector<dim> shared = whole ? std::vector<dim>{matrix.rows, 1} : std::vector<dim>{matrix.rows, groups, 1};
  auto insert = [&](operation op, std::vector<value> inputs) {
    value made = m.insert(before, std::move(op), std::move(inputs));
    made.producer->set_origin(before->origin());
    return made;
  };
  auto number = [&](const literal& of_groups) {
    return insert(broadcast{apart}, {m.add_constant(of_groups.reshaped(shared))});
  };
  value v = insert(convert{matrix.scales.type().type}, {m.add_constant(matrix.elements.reshaped(apart))});
  if (matrix.zero_points) v = insert(elementwise{scalar_function::sub}, {v, number(*matrix.zero_points)});
  v = insert(elementwise{scalar_function::mul}, {v, number(matrix.scales)});
  return v.type().dims == dims ? v : insert(reshape{dims}, {v});
}

bool is_int4_matrix(value v) {
  bool packed = false;
  return !v.producer->op().is<constant>() && comes_of_constants(v, v.type().elements(), packed) && packed;
}

bool stays_packed(const operation& op, const shape& operand) {
  return op.is<convert>() && is_packed(operand.type) && operand.is_static() &&
         operand.element_count() >= fewest_packed_elements;
}

}  // namespace kiln
