#include "ir/reference/tensor.hpp"

#include <functional>
#include <numeric>

namespace kiln::reference {

element_type unpacked_type(element_type type) {
  if (storage_bits(type) >= 8) return type;
  if (is_float(type)) return element_type::f8e4m3;
  return is_signed_integer(type) ? element_type::i8 : element_type::u8;
}

namespace {

literal with_values(shape type, const literal& value) {
  std::vector<std::byte> bytes(type.bytes());
  for (std::int64_t i = 0, n = type.element_count(); i < n; ++i) store_element(type.type, bytes.data(), i, value.at(i));
  return literal(std::move(type), std::move(bytes));
}

}  // namespace

literal unpacked(const literal& value) {
  element_type type = unpacked_type(value.type().type);
  return type == value.type().type ? value : with_values(value.type().with_type(type), value);
}

literal packed(element_type type, literal value) {
  return unpacked_type(type) == type ? value : with_values(value.type().with_type(type), value);
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
