// Gather and scatter. Indices out of range are an error; they are never clamped.
#include "ir/ops/movement.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ir/error.hpp"
#include "ir/reference/scalar_rules.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

// Normalizes an index (negative: from the end) and checks it against the axis.
std::int64_t resolve(std::string_view operation, std::int64_t index, std::int64_t length) {
  if (index < -length || index >= length)
    throw error(error_kind::invalid_model,
                fmt::format("{}: index {} is outside an axis of {}", operation, index, length));
  return index < 0 ? index + length : index;
}

// A result under construction. Each element takes at least one byte.
struct canvas {
  canvas(shape out, const literal& like)
      : type(std::move(out)), from(unpacked(like)), wide(type.with_type(from.type().type)), bytes(wide.bytes()) {}
  literal finish() { return packed(type.type, literal(std::move(wide), std::move(bytes))); }
  std::int64_t width() const { return storage_bits(wide.type) / 8; }
  shape type;
  literal from;
  shape wide;
  std::vector<std::byte> bytes;
};

void copy_elements(std::byte* to, std::int64_t to_index, const std::byte* from, std::int64_t from_index,
                   std::int64_t count, std::int64_t width) {
  if (count) std::memcpy(to + to_index * width, from + from_index * width, static_cast<std::size_t>(count * width));
}

// For each element of `indices` (same shape as data except along `axis`), in order, the offset of the data element it
// refers to.
std::vector<std::int64_t> element_offsets(std::string_view operation, const literal& indices,
                                          const std::vector<std::int64_t>& dims, std::int64_t axis) {
  auto along = static_cast<std::size_t>(normalize_axis(axis, dims.size()));
  auto strides = row_major_strides(dims);
  std::int64_t stride = strides[along];
  strides[along] = 0;
  auto result = offsets(indices.type().static_dims(), strides);
  auto chosen = indices.to_int64();
  for (std::size_t i = 0; i < result.size(); ++i) result[i] += resolve(operation, chosen[i], dims[along]) * stride;
  return result;
}

// For each tuple of `indices`, the offset of the first data element it refers to. The first `batch` axes of data and
// indices correspond.
std::vector<std::int64_t> tuple_offsets(std::string_view operation, const literal& indices,
                                        const std::vector<std::int64_t>& dims, std::size_t batch) {
  auto index_dims = indices.type().static_dims();
  auto length = static_cast<std::size_t>(index_dims.back());
  index_dims.pop_back();
  auto strides = row_major_strides(dims);
  std::vector<std::int64_t> walk(index_dims.size(), 0);
  std::copy_n(strides.begin(), batch, walk.begin());
  auto result = offsets(index_dims, walk);
  auto chosen = indices.to_int64();
  for (std::size_t i = 0; i < result.size(); ++i)
    for (std::size_t j = 0; j < length; ++j)
      result[i] += resolve(operation, chosen[i * length + j], dims[batch + j]) * strides[batch + j];
  return result;
}

// Writes or reduces blocks of `block` elements of the updates into a copy of the data, in the order of the updates.
literal scattered(std::string_view operation, const shape& out, std::span<const literal> inputs,
                  const std::vector<std::int64_t>& where, std::int64_t block, scatter_reduction reduction) {
  canvas result(out, inputs[0]);
  literal updates = unpacked(inputs[2]);
  std::ranges::copy(result.from.bytes(), result.bytes.begin());
  if (reduction == scatter_reduction::none) {
    for (std::size_t i = 0; i < where.size(); ++i)
      copy_elements(result.bytes.data(), where[i], updates.bytes().data(), static_cast<std::int64_t>(i) * block, block,
                    result.width());
    return result.finish();
  }
  visit_type(result.wide.type, [&](auto format) {
    using Format = decltype(format);
    auto* to = data<typename Format::storage>(result.bytes);
    const auto* from = updates.as<typename Format::storage>().data();
    auto fold = [&](auto combine) {
      for (std::size_t i = 0; i < where.size(); ++i)
        for (std::int64_t n = 0; n < block; ++n) {
          auto& element = to[where[i] + n];
          element = Format::store(
              combine(Format::load(element), Format::load(from[static_cast<std::int64_t>(i) * block + n])));
        }
    };
    if constexpr (Format::type == element_type::boolean)
      throw error(error_kind::internal, std::string(operation) + " cannot combine bool");
    else switch (reduction) {
        case scatter_reduction::add:
          return fold([](auto a, auto b) { return scalar_rule<scalar_function::add>::apply(a, b); });
        case scatter_reduction::mul:
          return fold([](auto a, auto b) { return scalar_rule<scalar_function::mul>::apply(a, b); });
        case scatter_reduction::min:
          return fold([](auto a, auto b) { return scalar_rule<scalar_function::min>::apply(a, b); });
        case scatter_reduction::max:
          return fold([](auto a, auto b) { return scalar_rule<scalar_function::max>::apply(a, b); });
        case scatter_reduction::none: return;
      }
  });
  return result.finish();
}

}  // namespace

std::vector<literal> gather::evaluate(std::span<const literal> inputs) const {
  canvas result(output_shapes(*this, inputs)[0], inputs[0]);
  auto dims = inputs[0].type().static_dims();
  axis_view view(dims, normalize_axis(axis, dims.size()));
  auto indices = inputs[1].to_int64();
  for (auto& index : indices) index = resolve(name(), index, view.length);
  std::int64_t to = 0;
  for (std::int64_t o = 0; o < view.outer; ++o)
    for (std::int64_t index : indices) {
      copy_elements(result.bytes.data(), to, result.from.bytes().data(), (o * view.length + index) * view.inner,
                    view.inner, result.width());
      to += view.inner;
    }
  return {result.finish()};
}

std::vector<literal> gather_elements::evaluate(std::span<const literal> inputs) const {
  canvas result(output_shapes(*this, inputs)[0], inputs[0]);
  auto where = element_offsets(name(), inputs[1], inputs[0].type().static_dims(), axis);
  for (std::size_t i = 0; i < where.size(); ++i)
    copy_elements(result.bytes.data(), static_cast<std::int64_t>(i), result.from.bytes().data(), where[i], 1,
                  result.width());
  return {result.finish()};
}

std::vector<literal> gather_nd::evaluate(std::span<const literal> inputs) const {
  canvas result(output_shapes(*this, inputs)[0], inputs[0]);
  auto dims = inputs[0].type().static_dims();
  auto batch = static_cast<std::size_t>(batch_dims);
  auto where = tuple_offsets(name(), inputs[1], dims, batch);
  auto length = static_cast<std::size_t>(inputs[1].type().dims.back().value());
  std::int64_t block = product(std::span(dims).subspan(batch + length));
  for (std::size_t i = 0; i < where.size(); ++i)
    copy_elements(result.bytes.data(), static_cast<std::int64_t>(i) * block, result.from.bytes().data(), where[i],
                  block, result.width());
  return {result.finish()};
}

std::vector<literal> scatter_elements::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  return {scattered(name(), out, inputs, element_offsets(name(), inputs[1], out.static_dims(), axis), 1, reduction)};
}

std::vector<literal> scatter_nd::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  auto dims = out.static_dims();
  auto length = static_cast<std::size_t>(inputs[1].type().dims.back().value());
  return {scattered(name(), out, inputs, tuple_offsets(name(), inputs[1], dims, 0),
                    product(std::span(dims).subspan(length)), reduction)};
}

}  // namespace kiln
