#include "aot/passes/quantized_matrix.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "ir/ops/all.hpp"

namespace kiln {
namespace {

bool is_quantized(element_type type) {
  return storage_bits(type) < 8 ||
         (storage_bits(type) == 8 && type != element_type::boolean && type != element_type::f8e8m0);
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
  // A difference from a number becomes a sum with the negative number (simplify_arithmetic.cpp).
  constexpr std::array functions{scalar_function::mul, scalar_function::sub, scalar_function::add,
                                 scalar_function::neg};
  const bool passes = op.is<convert>() || op.is<broadcast>() || op.is<reshape>() ||
                      (e && std::ranges::find(functions, e->function) != functions.end());
  return passes && std::ranges::all_of(v.producer->inputs(),
                                       [&](value input) { return comes_of_constants(input, elements, packed); });
}

// Returns a constant (perhaps behind a broadcast) as [rows, groups]; nullopt unless it has one number for each row and
// group of the matrix, or one for all.
std::optional<literal> numbers_of_groups(value v, const quantized_matrix& matrix) {
  while (v.producer->op().is<broadcast>()) v = v.producer->inputs()[0];
  const literal* data = module::constant(v);
  const std::int64_t groups = matrix.depth / matrix.group, count = matrix.rows * groups;
  if (!data) return std::nullopt;
  const std::int64_t given = data->type().element_count();
  if (given != 1 && given != count) return std::nullopt;
  const shape type{data->type().type, {matrix.rows, groups}};
  // The count alone does not tell numbers per row from numbers along the depth of a square matrix.
  const auto dims = data->type().static_dims();
  if (given > 1 && (dims.size() < 2 || dims.front() != matrix.rows || dims.back() != 1)) return std::nullopt;
  if (given == count) return data->reshaped(type.dims);
  return literal::from_doubles(type, std::vector<double>(static_cast<std::size_t>(count), data->at(0)));
}

// Returns the operand of a binary operation that is computed and the one that is constant, in this order.
std::optional<std::pair<value, value>> computed_and_constant(value v, scalar_function function) {
  const auto* e = v.producer->op().get_if<elementwise>();
  if (!e || e->function != function) return std::nullopt;
  auto is_constant = [](value x) {
    while (x.producer->op().is<broadcast>()) x = x.producer->inputs()[0];
    return x.producer->op().is<constant>();
  };
  const value a = v.producer->inputs()[0], b = v.producer->inputs()[1];
  if (is_constant(b)) return std::pair{a, b};
  if (is_constant(a) && function != scalar_function::sub) return std::pair{b, a};
  return std::nullopt;
}

// Returns true if the result of `from` is read only by products, as their right matrix, perhaps through arithmetic and
// reshapes. Users that have no users themselves, as rewrites leave them behind, do not count.
bool only_products_read(const module& m, const instruction& from, const dim& elements) {
  bool read = false;
  for (const instruction* user : from.users()) {
    if (!m.has_uses(user)) continue;
    read = true;
    const operation& op = user->op();
    if (const auto* product = op.get_if<dot>()) {
      const value right = user->inputs()[1];
      if (!product->transpose_b || right.producer != &from || user->inputs()[0] == right ||
          !(right.type().elements() == elements) || !is_quantized_matrix(right))
        return false;
    } else if (!(op.is<elementwise>() || op.is<reshape>()) || !only_products_read(m, *user, elements)) {
      return false;
    }
  }
  return read;
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

std::optional<quantized_matrix> read_quantized_matrix(value v) {
  if (v.type().rank() != 2 || !v.type().is_static()) return std::nullopt;
  quantized_matrix found{.rows = v.type().dims[0].value(), .depth = v.type().dims[1].value()};
  if (v.producer->op().is<reshape>()) v = v.producer->inputs()[0];
  const auto scaled = computed_and_constant(v, scalar_function::mul);
  if (!scaled) return std::nullopt;
  value x = scaled->first;
  const auto subtracted = computed_and_constant(x, scalar_function::sub),
             added = computed_and_constant(x, scalar_function::add);
  const auto& centred = subtracted ? subtracted : added;
  if (centred) x = centred->first;
  const literal* elements = x.producer->op().is<convert>() ? module::constant(x.producer->inputs()[0]) : nullptr;
  if (!elements || !is_quantized(elements->type().type)) return std::nullopt;
  // [rows, depth], or [rows, groups, group].
  const auto dims = elements->type().static_dims();
  if (dims.size() < 2 || dims.size() > 3 || dims[0] != found.rows ||
      elements->type().element_count() != found.rows * found.depth)
    return std::nullopt;
  found.group = dims.back();
  found.elements = elements->reshaped({found.rows, found.depth});
  auto scales = numbers_of_groups(scaled->second, found);
  if (!scales) return std::nullopt;
  found.scales = *std::move(scales);
  if (!centred) return found;
  found.zero_points = numbers_of_groups(centred->second, found);
  if (!found.zero_points) return std::nullopt;
  if (!subtracted) found.zero_points = elementwise{scalar_function::neg}.evaluate({{*found.zero_points}})[0];
  return found;
}

quantized_matrix joined_rows(const std::vector<quantized_matrix>& matrices) {
  quantized_matrix result{.depth = matrices[0].depth, .group = matrices[0].group};
  std::vector<literal> elements, scales, zero_points;
  for (const quantized_matrix& m : matrices) {
    result.rows += m.rows;
    elements.push_back(m.elements), scales.push_back(m.scales);
    if (m.zero_points) zero_points.push_back(*m.zero_points);
  }
  const concat below{0};
  result.elements = below.evaluate(elements)[0], result.scales = below.evaluate(scales)[0];
  if (!zero_points.empty()) result.zero_points = below.evaluate(zero_points)[0];
  return result;
}

bool is_quantized_matrix(value v) {
  bool packed = false;
  return !v.producer->op().is<constant>() && comes_of_constants(v, v.type().elements(), packed) && packed;
}

bool can_stay_packed(const shape& constant) {
  return is_quantized(constant.type) && constant.is_static() && constant.element_count() >= fewest_packed_elements;
}

bool stays_packed(const module& m, const instruction& conversion) {
  if (!conversion.op().is<convert>()) return false;
  const value from = conversion.inputs()[0];
  if (!can_stay_packed(from.type())) return false;
  return storage_bits(from.type().type) < 8 ||
         (from.producer->op().is<constant>() && only_products_read(m, conversion, from.type().elements()));
}

}  // namespace kiln
