#include "aot/onnx/ops/packed_weights.hpp"

namespace kiln::onnx_import {
namespace {

std::uint8_t packed_at(std::span<const std::uint8_t> bytes, std::int64_t i, std::int64_t bits) {
  std::int64_t per_byte = 8 / bits;
  return static_cast<std::uint8_t>((bytes[static_cast<std::size_t>(i / per_byte)] >> (i % per_byte * bits)) &
                                   ((1 << bits) - 1));
}

literal bytes_of(node& n, std::size_t i, std::string_view what, std::int64_t count) {
  literal data = n.constant(i, what);
  if (data.type().type != element_type::u8 || data.type().element_count() != count)
    invalid(std::string(what) + " is " + data.type().str() + ", not " + std::to_string(count) + " bytes");
  return data;
}

}  // namespace

std::int64_t checked_bits(std::int64_t bits) {
  if (bits == 2 || bits == 4 || bits == 8) return bits;
  refuse("weights of " + std::to_string(bits) + " bits are not supported, only of 2, 4 and 8");
}

value packed_elements(node& n, std::size_t i, std::string_view what, const std::vector<dim>& dims, std::int64_t bits) {
  std::int64_t count = shape{element_type::u8, dims}.element_count();
  if (count * bits % 8) invalid(std::string(what) + " does not fill whole bytes");
  literal data = bytes_of(n, i, what, count * bits / 8);
  if (bits == 8) return n.b.constant(data.reshaped(dims));
  std::vector<std::byte> bytes(data.bytes().begin(), data.bytes().end());
  // Expand 2-bit elements to 4 bits: each byte becomes two bytes.
  if (bits == 2) {
    auto from = data.as<std::uint8_t>();
    bytes.assign(bytes.size() * 2, std::byte{});
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      auto first = static_cast<std::int64_t>(2 * k);
      bytes[k] = static_cast<std::byte>(packed_at(from, first, 2) | packed_at(from, first + 1, 2) << 4);
    }
  }
  return n.b.constant(literal(shape{element_type::u4, dims}, std::move(bytes)));
}

value packed_numbers(node& n, std::size_t i, std::string_view what, std::int64_t rows, std::int64_t count,
                     std::int64_t bits, element_type type, const std::vector<dim>& dims) {
  std::int64_t row_bytes = (count * bits + 7) / 8;
  literal data = bytes_of(n, i, what, rows * row_bytes);
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t k = 0; k < count; ++k)
      numbers.push_back(packed_at(data.as<std::uint8_t>().subspan(static_cast<std::size_t>(row * row_bytes)), k, bits));
  return n.b.constant(literal::from_doubles({type, dims}, numbers));
}

value repeated_blocks(builder& b, value parameter, std::int64_t axis, std::int64_t block, std::int64_t length) {
  const auto dims = parameter.type().dims;
  auto at = static_cast<std::ptrdiff_t>(axis);
  auto apart = dims, stretched = dims, joined = dims;
  apart.insert(apart.begin() + at + 1, 1);
  stretched.insert(stretched.begin() + at + 1, block);
  joined[static_cast<std::size_t>(axis)] = dims.at(static_cast<std::size_t>(axis)) * dim(block);
  value full = b.with_dims(b.broadcast_to(b.with_dims(parameter, apart), stretched), joined);
  return joined[static_cast<std::size_t>(axis)] == dim(length) ? full : b.slice_axis(full, axis, 0, length);
}

}  // namespace kiln::onnx_import
