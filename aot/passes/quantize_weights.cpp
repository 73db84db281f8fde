#include "aot/passes/quantize_weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "aot/passes/quantized_matrix.hpp"
#include "ir/ops/all.hpp"

namespace kiln {
namespace {

float rounded(element_type type, float x) {
  if (type == element_type::f16) return f16_to_f32(f32_to_f16(x));
  if (type == element_type::bf16) return bf16_to_f32(f32_to_bf16(x));
  return x;
}

std::vector<float> numbers_of(const literal& data) {
  std::vector<float> numbers(static_cast<std::size_t>(data.type().element_count()));
  auto narrow = data.type().type == element_type::f16 ? f16_to_f32 : bf16_to_f32;
  if (data.type().type == element_type::f32) std::ranges::copy(data.as<float>(), numbers.begin());
  else std::ranges::transform(data.as<std::uint16_t>(), numbers.begin(), narrow);
  return numbers;
}

float quantized(float x, float scale) { return scale == 0 ? 0 : std::clamp(std::nearbyint(x / scale), -8.0f, 7.0f); }

double squared_error(std::span<const float> group, float scale) {
  double sum = 0;
  for (float x : group) {
    const double lost = x - quantized(x, scale) * scale;
    sum += lost * lost;
  }
  return sum;
}

struct quantization {
  quantized_matrix matrix;
  double error = 0;  // relative error
};

// Quantizes a matrix [k, n], or [n, k] if `depth_last`.
std::optional<quantization> quantize(const literal& data, bool depth_last, std::int64_t rows, std::int64_t depth,
                                     std::int64_t group) {
  const element_type type = data.type().type;
  const std::vector<float> numbers = numbers_of(data);
  if (!std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); })) return std::nullopt;
  const std::int64_t groups = depth / group;
  const shape element_type_of{element_type::i4, {rows, depth}};
  std::vector<std::byte> elements(element_type_of.bytes());
  std::vector<double> scales(static_cast<std::size_t>(rows * groups));
  double error = 0, whole = 0;
  std::vector<float> members(static_cast<std::size_t>(group));
  constexpr std::int64_t block = 16;  // rows whose elements share cache lines
  for (std::int64_t first = 0; first < rows; first += block)
    for (std::int64_t g = 0; g < groups; ++g)
      for (std::int64_t row = first; row < std::min(rows, first + block); ++row) {
        for (std::int64_t i = 0; i < group; ++i) {
          const std::int64_t k = g * group + i;
          members[static_cast<std::size_t>(i)] =
              numbers[static_cast<std::size_t>(depth_last ? row * depth + k : k * rows + row)];
        }
        const float extreme = *std::ranges::max_element(members, {}, [](float x) { return std::fabs(x); });
        const std::array<float, 2> candidates{rounded(type, std::fabs(extreme) / 7), rounded(type, extreme / -8)};
        const std::array<double, 2> errors{squared_error(members, candidates[0]),
                                           squared_error(members, candidates[1])};
        const std::size_t better = errors[1] < errors[0] ? 1 : 0;
        error += errors[better];
        scales[static_cast<std::size_t>(row * groups + g)] = candidates[better];
        for (std::int64_t i = 0; i < group; ++i) {
          const float x = members[static_cast<std::size_t>(i)];
          whole += static_cast<double>(x) * x;
          store_integer(element_type::i4, elements.data(), row * depth + g * group + i,
                        static_cast<std::int64_t>(quantized(x, candidates[better])));
        }
      }
  quantization result;
  result.matrix = {.rows = rows,
                   .depth = depth,
                   .group = group,
                   .elements = literal(element_type_of, std::move(elements)),
                   .scales = literal::from_doubles({type, {rows, groups}}, scales)};
  result.error = whole > 0 ? std::sqrt(error / whole) : 0;
  return result;
}

bool is_weights_alone(const module& m, value v) {
  if (std::ranges::find(m.outputs(), v) != m.outputs().end()) return false;
  return std::ranges::all_of(v.producer->users(),
                             [&](const instruction* user) { return user->op().is<dot>() && user->inputs()[0] != v; });
}

}  // namespace

bool quantize_weights::apply(module& m) const {
  quantization_report unused, &count = report ? *report : unused;
  std::map<std::pair<value, bool>, std::optional<quantization>> done;  // by weights and layout
  bool changed = false;
  for (auto next = m.instructions().begin(); next != m.instructions().end();) {
    instruction& at = *next++;
    const dot* product = at.op().get_if<dot>();
    if (!product || !m.has_uses(&at)) continue;
    value v = at.inputs()[1];
    const literal* data = module::constant(v);
    const element_type type = v.type().type;
    if (!data || !is_weights_alone(m, v) ||
        (type != element_type::f32 && type != element_type::f16 && type != element_type::bf16))
      continue;
    const auto dims = v.type().static_dims();
    if (std::any_of(dims.begin(), dims.end() - 2, [](std::int64_t d) { return d != 1; })) continue;
    const bool depth_last = product->transpose_b;
    const std::int64_t depth = dims[dims.size() - (depth_last ? 1 : 2)],
                       rows = dims[dims.size() - (depth_last ? 2 : 1)];
    const std::int64_t group = std::gcd(most_group, depth);
    auto [found, fresh] = done.try_emplace({v, depth_last});
    if (fresh) {
      const bool small = rows * depth < fewest_elements || group < least_group;
      if (!small) found->second = quantize(*data, depth_last, rows, depth, group);
      const bool exact = found->second && found->second->error <= most_error;
      count.too_small += small, count.too_inexact += !small && !exact, count.quantized += exact;
      if (!exact) found->second.reset();
      if (exact) {
        count.bytes_before += static_cast<std::int64_t>(data->bytes().size());
        count.bytes_after += static_cast<std::int64_t>(found->second->matrix.elements.bytes().size() +
                                                       found->second->matrix.scales.bytes().size());
        count.largest_error = std::max(count.largest_error, found->second->error);
      }
    }
    if (!found->second) continue;
    std::vector<dim> whole(v.type().dims.begin(), v.type().dims.end() - 2);
    whole.insert(whole.end(), {rows, depth});
    dot transposed = *product;
    transposed.transpose_b = true;
    value weights = add_quantized_matrix(m, &at, found->second->matrix, whole);
    value made = m.insert(&at, transposed, {at.inputs()[0], weights});
    made.producer->set_origin(at.origin());
    m.replace(at.output(), made);
    changed = true;
  }
  m.erase_dead();
  return changed;
}

}  // namespace kiln
