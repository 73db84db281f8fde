#include "ir/reference/tensor.hpp"

#include <functional>
#include <numeric>

namespace kiln::reference {

element_type unpacked_type(element_type type) {
  return type == element_type::i4 ? element_type::i8 : type == element_type::u4 ? element_type::u8 : type;
}

literal unpacked(const literal& value) {
  element_type type = unpacked_type(value.type().type);
  if (type == value.type().type) return value;
  std::vector<std::byte> bytes(static_cast<std::size_t>(value.type().element_count()));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(value.at_int(static_cast<std::int64_t>(i)));
  return literal(value.type().with_type(type), std::move(bytes));
}

literal packed(element_type type, literal value) {
  if (unpacked_type(type) == type) return value;
  shape packed_shape = value.type().with_type(type);
  std::vector<std::byte> bytes(packed_shape.bytes());
  for (std::int64_t i = 0, n = packed_shape.element_count(); i < n; ++i)
    store_integer(type, bytes.data(), i, value.at_int(i));
  return literal(std::move(packed_shape), std::move(bytes));
}

std::int64_t product(std::span<const std::int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t(1), std::multiplies<>());
}

std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides) {
  std::vector<std::int64_t> result{0};
  result.reserve(static_cast<std::size_t>(product(dims)));
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    std::vector<std::int64_t> longer;
    longer.reserve(result.size() * static_cast<std::size_t>(dims[axis]));
    for (std::int64_t base : result)
      for (std::int64_t i = 0; i < dims[axis]; ++i) longer.push_back(base + i * strides[axis]);
    result = std::move(longer);
  }
  return result;
}

axis_view::axis_view(const std::vector<std::int64_t>& dims, std::int64_t axis) {
  auto at = static_cast<std::size_t>(axis);
  outer = product(std::span(dims).first(at));
  length = dims[at];
  inner = product(std::span(dims).subspan(at + 1));
}

}  // namespace kiln::reference
