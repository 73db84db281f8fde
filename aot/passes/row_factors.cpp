#include "aot/passes/row_factors.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "aot/kernels/joined_anchors.hpp"
#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/cancellation.hpp"

namespace kiln {
namespace {

float widened(std::uint16_t bits, element_type type) {
  if (type == element_type::bf16) return bf16_to_f32(bits);
  const std::uint32_t exponent = bits >> 10 & 31u;
  if (exponent == 0 || exponent == 31) return f16_to_f32(bits);
  constexpr std::uint32_t bias = 127 - 15;
  return std::bit_cast<float>((bits & 0x8000u) << 16 | ((bits & 0x7fffu) << 13) + (bias << 23));
}

// To nearest even, like f32_to_f16, which takes the rare cases.
std::uint16_t narrowed(float number, element_type type) {
  if (type == element_type::bf16) return f32_to_bf16(number);
  const auto bits = std::bit_cast<std::uint32_t>(number);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  constexpr std::uint32_t least = 0x38800000u, most = 0x477fe000u, bias = 127 - 15;  // 2^-14, 65504
  if (magnitude < least || magnitude > most) return f32_to_f16(number);
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | ((rounded - (bias << 23)) >> 13));
}

// Returns [depth, columns] weights (or [columns, depth]) with each row of the depth multiplied by its factor; nullopt
// if a finite weight would no longer be finite.
std::optional<literal> scaled(const literal& weights, bool depth_last, const std::vector<double>& factors) {
  const element_type type = weights.type().type;
  const auto from = weights.as<std::uint16_t>();
  const auto columns = static_cast<std::size_t>(weights.type().dims[1].value());
  std::vector<std::byte> bytes(weights.bytes().size());
  auto* to = reinterpret_cast<std::uint16_t*>(bytes.data());
  std::vector<float> of_row(columns);
  for (std::size_t row = 0, at = 0; at < from.size(); ++row) {
    check_stop();
    for (std::size_t c = 0; c < columns; ++c)
      of_row[c] = static_cast<float>(factors[factors.size() == 1 ? 0 : depth_last ? c : row]);
    for (std::size_t c = 0; c < columns; ++c, ++at) {
      const float weight = widened(from[at], type), number = weight * of_row[c];
      to[at] = narrowed(number, type);
      if (!std::isfinite(widened(to[at], type)) && std::isfinite(weight)) return std::nullopt;
    }
  }
  return literal(weights.type(), std::move(bytes));
}

// A normalization whose result is multiplied by a constant vector: `product` is that multiplication, `rows` the
// normalization alone, `factors` the vector.
struct scaled_rows {
  value product;
  value rows;
  std::vector<double> factors;
};

std::optional<scaled_rows> find_scaled_rows(instruction& at) {
  const value product{&at, 0};
  if (!is_function(product, scalar_function::mul)) return std::nullopt;
  for (std::size_t k : {0, 1}) {
    const value rows = at.inputs()[k], factor = at.inputs()[1 - k];
    const std::size_t axis = product.type().rank() - 1;
    if (!is_constant_like(factor) || !root_mean_square_of(rows)) continue;
    const value source = along_one_axis(factor, axis);
    if (!source || !source.type().is_static()) continue;
    return scaled_rows{product, rows, evaluate_constant_like(source).to_doubles()};
  }
  return std::nullopt;
}

// The products that read v, converted to 16 bits or not; nullopt if there is another reader.
std::optional<std::vector<instruction*>> products_of(const module& m, value v) {
  std::vector<instruction*> products;
  for (value output : m.outputs())
    if (output == v) return std::nullopt;
  for (instruction* user : v.producer->users()) {
    if (user->op().is<convert>()) {
      const auto more = products_of(m, user->output());
      if (!more) return std::nullopt;
      products.insert(products.end(), more->begin(), more->end());
      continue;
    }
    const bool reads_rows = is_product_of_few_rows(*user) && user->inputs()[0] == v && user->inputs()[1] != v;
    const value weights = reads_rows ? user->inputs()[1] : value{};
    if (!weights || !module::constant(weights) || weights.type().type != v.type().type || weights.type().rank() != 2 ||
        !has_single_use(m, weights))
      return std::nullopt;
    products.push_back(user);
  }
  return products;
}

}  // namespace

bool row_factors::apply(module& m) const {
  bool changed = false;
  for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
    const auto found = find_scaled_rows(*here);
    if (!found) continue;
    const auto products = products_of(m, found->product);
    if (!products || products->empty()) continue;
    std::vector<literal> weights;
    for (const instruction* p : *products) {
      auto made = scaled(*module::constant(p->inputs()[1]), p->op().get_if<dot>()->transpose_b, found->factors);
      if (!made) break;
      weights.push_back(*std::move(made));
    }
    if (weights.size() != products->size()) continue;
    for (std::size_t i = 0; i < weights.size(); ++i)
      m.set_input((*products)[i], 1, m.add_constant(std::move(weights[i])));
    if (log) log->fired(name(), "factors_into_weights", here->origin());
    m.replace(found->product, found->rows);
    changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
