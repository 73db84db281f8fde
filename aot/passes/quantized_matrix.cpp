#include "aot/passes/quantized_matrix.hpp"

#include <algorithm>
#include <array>

#include "ir/ops/all.hpp"

namespace kiln {
namespace {

bool is_quantized(element_type type) {
  return storage_bits(type) < 8 || type == element_type::i8 || type == element_type::u8;
}

// Whether v is computed from constants by the allowed operations. Sets `packed` if one constant has 4 or 8 bits for
// each of `elements`.
bool comes_of_constants(value v, const dim& elements, bool& packed) {
  const operation& op = v.producer->op();
  if (op.is<constant>()) {
    packed |= is_quantized(v.type().type) && v.type().elements() == elements;
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

// Whether all that reads its result, through arithmetic and reshapes, are products whose right matrix it is.
bool only_products_read(const instruction& from, const dim& elements) {
  return !from.users().empty() && std::ranges::all_of(from.users(), [&](const instruction* user) {
    const operation& op = user->op();
    if (const auto* product = op.get_if<dot>()) {
      const value right = user->inputs()[1];
      return product->transpose_b && right.producer == &from && user->inputs()[0] != right &&
             is_quantized_matrix(right);
    }
    return (op.is<elementwise>() || op.is<reshape>()) && only_products_read(*user, elements);
  });
}

}  // namespace

value add_quantized_matrix(module& m, instruction* before, const quantized_matrix& matrix,
                           const std::vector<dim>& dims) {
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

bool is_quantized_matrix(value v) {
  bool packed = false;
  return !v.producer->op().is<constant>() && comes_of_constants(v, v.type().elements(), packed) && packed;
}

bool can_stay_packed(const shape& constant) {
  return is_quantized(constant.type) && constant.is_static() && constant.element_count() >= fewest_packed_elements;
}

bool stays_packed(const instruction& conversion) {
  if (!conversion.op().is<convert>()) return false;
  const value from = conversion.inputs()[0];
  if (!can_stay_packed(from.type())) return false;
  return storage_bits(from.type().type) < 8 ||
         (from.producer->op().is<constant>() && only_products_read(conversion, from.type().elements()));
}

}  // namespace kiln
