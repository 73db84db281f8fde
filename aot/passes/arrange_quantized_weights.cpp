#include "aot/passes/arrange_quantized_weights.hpp"

#include <numeric>

#include "aot/passes/facts.hpp"
#include "aot/passes/quantized_matrix.hpp"
#include "aot/passes/reshape_groups.hpp"

namespace kiln {
namespace {

constexpr std::int64_t fewest_in_group = 8;

value operand(value v, std::size_t i = 0) { return v.producer->inputs()[i]; }
template <class Op>
const Op* as(value v) {
  return v.producer->op().get_if<Op>();
}

// (constant − zero) × scale, the form in which DequantizeLinear is imported.
struct dequantization {
  const literal* elements = nullptr;
  value scale = {}, zero = {};  // with the dims of the elements; zero may be null
};

std::optional<dequantization> find_dequantization(value v) {
  if (!is_function(v, scalar_function::mul)) return std::nullopt;
  for (std::size_t side : {0, 1}) {
    dequantization found{.scale = operand(v, 1 - side)};
    value x = operand(v, side);
    if (is_function(x, scalar_function::sub)) found.zero = operand(x, 1), x = operand(x, 0);
    if (!as<convert>(x)) continue;
    found.elements = module::constant(operand(x));
    if (found.elements && can_stay_packed(found.elements->type()) && found.elements->type().rank() == 2) return found;
  }
  return std::nullopt;
}

// Number of neighbours along `axis` of a constant matrix that are equal: all of them, or a power of two that divides
// the extent. Small models have scales that were broadcast and folded during import.
std::int64_t run_of_constant(const literal& data, std::size_t axis) {
  const auto dims = data.type().static_dims();
  const std::int64_t stride = axis == 0 ? dims[1] : 1;
  auto repeats = [&](std::int64_t group) {
    for (std::int64_t i = 0; i < dims[0] * dims[1]; ++i) {
      const std::int64_t index = axis == 0 ? i / dims[1] : i % dims[1];
      if (data.at(i) != data.at(i - index % group * stride)) return false;
    }
    return true;
  };
  if (repeats(dims[axis])) return dims[axis];
  std::int64_t group = dims[axis] & -dims[axis];
  while (group > 1 && !repeats(group)) group /= 2;
  return group;
}

// Number of neighbours along `axis` of a matrix that are known to be equal because of a broadcast.
std::int64_t run_along(value v, std::size_t axis) {
  const std::int64_t extent = v.type().static_dims()[axis];
  if (const literal* data = module::constant(v)) return run_of_constant(*data, axis);
  if (as<convert>(v)) return run_along(operand(v), axis);
  if (as<broadcast>(v)) return padded_dims(operand(v).type().dims, 2)[axis] == dim(1) ? extent : 1;
  if (!as<reshape>(v)) return 1;
  value stretched = operand(v);
  while (as<convert>(stretched)) stretched = operand(stretched);
  if (!as<broadcast>(stretched) || stretched.type().rank() != 3) return 1;
  // Blocks: [a, 1, b] → [a, g, b] → [a * g, b], and the same along the second axis.
  const auto to = stretched.type().static_dims(), from = operand(stretched).type().static_dims();
  if (from.size() != 3 || from[axis + 1] != 1 || from[axis] != to[axis] || to[axis] * to[axis + 1] != extent) return 1;
  return to[axis + 1];
}

// One element of a constant behind conversions, reshapes and broadcasts.
std::optional<double> number_at(value v, std::int64_t linear) {
  if (const literal* data = module::constant(v)) return data->at(linear);
  if (as<convert>(v) || as<reshape>(v)) return number_at(operand(v), linear);
  if (!as<broadcast>(v)) return std::nullopt;
  const auto to = v.type().static_dims(), from = operand(v).type().static_dims();
  std::int64_t source = 0, stride = 1;
  for (std::size_t i = to.size(), j = from.size(); i-- > 0; linear /= to[i]) {
    if (j == 0) continue;
    --j;
    if (from[j] != 1) source += linear % to[i] * stride;
    stride *= from[j];
  }
  return number_at(operand(v), source);
}

// [a, b] → [b, a]
literal transposed(const literal& matrix) {
  const auto dims = matrix.type().static_dims();
  const shape type{matrix.type().type, {dims[1], dims[0]}};
  std::vector<std::byte> bytes(type.bytes());
  const auto from = matrix.bytes();
  const element_type code = storage_bits(type.type) == 4   ? element_type::u4
                            : storage_bits(type.type) == 2 ? element_type::u2
                                                           : element_type::u8;
  for (std::int64_t i = 0; i < dims[0]; ++i)
    for (std::int64_t j = 0; j < dims[1]; ++j)
      store_integer(code, bytes.data(), j * dims[0] + i, load_integer(code, from.data(), i * dims[1] + j));
  return literal(type, std::move(bytes));
}

// Samples one number for each row and group of v, a matrix with k along `depth_axis`.
std::optional<literal> of_groups(value v, std::size_t depth_axis, const quantized_matrix& matrix, element_type type) {
  const std::int64_t groups = matrix.depth / matrix.group;
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < matrix.rows; ++row)
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t k = g * matrix.group;
      auto number = number_at(v, depth_axis == 0 ? k * matrix.rows + row : row * matrix.depth + k);
      if (!number) return std::nullopt;
      numbers.push_back(*number);
    }
  return literal::from_doubles({type, {matrix.rows, groups}}, numbers);
}

bool arrange(module& m, instruction& at) {
  dot product = *at.op().get_if<dot>();
  value v = at.inputs()[1];
  const element_type type = v.type().type;
  std::size_t depth_axis = product.transpose_b ? 1 : 0;
  for (;;) {
    const operation& op = v.producer->op();
    const auto* t = op.get_if<transpose>();
    if (op.is<reshape>() && only_unit_dims_change(operand(v).type().dims, v.type().dims)) v = operand(v);
    else if (op.is<convert>() && is_float(operand(v))) v = operand(v);
    else if (t && t->permutation == std::vector<std::int64_t>{1, 0}) v = operand(v), depth_axis = 1 - depth_axis;
    else break;
  }
  auto found = find_dequantization(v);
  if (!found) return false;
  const auto dims = found->elements->type().static_dims();
  quantized_matrix matrix{.rows = dims[1 - depth_axis], .depth = dims[depth_axis]};
  matrix.group = run_along(found->scale, depth_axis);
  if (found->zero) matrix.group = std::gcd(matrix.group, run_along(found->zero, depth_axis));
  if (matrix.group < fewest_in_group) return false;
  auto scales = of_groups(found->scale, depth_axis, matrix, type);
  if (found->zero) matrix.zero_points = of_groups(found->zero, depth_axis, matrix, type);
  if (!scales || (found->zero && !matrix.zero_points)) return false;
  matrix.scales = *scales;
  matrix.elements = depth_axis == 0 ? transposed(*found->elements) : *found->elements;
  // The product's right operand may have leading dims of 1, but must be one matrix.
  std::vector<dim> whole = at.inputs()[1].type().dims;
  whole[whole.size() - 2] = matrix.rows, whole.back() = matrix.depth;
  if (std::any_of(whole.begin(), whole.end() - 2, [](const dim& d) { return !(d == dim(1)); })) return false;
  value weights = add_quantized_matrix(m, &at, matrix, whole);
  product.transpose_b = true;
  value made = m.insert(&at, product, {at.inputs()[0], weights});
  made.producer->set_origin(at.origin());
  m.replace(at.output(), made);
  return true;
}

}  // namespace

bool arrange_quantized_weights::apply(module& m) const {
  bool changed = false;
  for (auto next = m.instructions().begin(); next != m.instructions().end();) {
    instruction& at = *next++;
    if (at.op().is<dot>() && m.has_uses(&at)) changed |= arrange(m, at);
  }
  m.erase_dead();
  return changed;
}

}  // namespace kiln
