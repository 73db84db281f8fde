// Helpers of the reference implementations: shapes and offsets of dense tensors, and construction of results. Free
// functions on values; any thread.
#pragma once

#include <span>
#include <vector>

#include "ir/literal.hpp"
#include "ir/reference/dispatch.hpp"

namespace kiln::reference {

// The output shapes of `op` for these inputs; throws what infer throws.
template <class Op>
std::vector<shape> output_shapes(const Op& op, std::span<const literal> inputs) {
  std::vector<shape> shapes;
  for (const literal& input : inputs) shapes.push_back(input.type());
  return op.infer(shapes);
}

template <class T>
T* data(std::vector<std::byte>& bytes) {
  return reinterpret_cast<T*>(bytes.data());
}

// Unpacks elements of fewer than 8 bits to a type of one byte that holds their values exactly: i8, u8, or f8e4m3 for
// f4e2m1. Other types are returned unchanged.
literal unpacked(const literal& value);
// The inverse: packs elements of unpacked_type(type) if `type` has fewer than 8 bits.
literal packed(element_type type, literal value);
element_type unpacked_type(element_type type);

// The offsets of all elements of a tensor with these `dims` and `strides`, in row-major order.
std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides);

std::int64_t product(std::span<const std::int64_t> dims);

// A tensor seen as [outer, length, inner] around one axis.
struct axis_view {
  axis_view(const std::vector<std::int64_t>& dims, std::int64_t axis);
  std::int64_t outer, length, inner;
};

// Converts every element to Accumulator (double, or integers modulo 2^64).
template <class Accumulator>
std::vector<Accumulator> widened(const literal& value) {
  return visit_type(value.type().type, [&](auto format) {
    using Format = decltype(format);
    auto elements = value.as<typename Format::storage>();
    std::vector<Accumulator> result(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) result[i] = static_cast<Accumulator>(Format::load(elements[i]));
    return result;
  });
}

// Rounds each accumulated value to the element type of `type`.
template <class Accumulator>
literal narrowed(shape type, const std::vector<Accumulator>& values) {
  std::vector<std::byte> bytes(type.bytes());
  visit_type(type.type, [&](auto format) {
    using Format = decltype(format);
    auto* out = data<typename Format::storage>(bytes);
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = Format::store(cast<typename Format::compute>(values[i]));
  });
  return literal(std::move(type), std::move(bytes));
}

}  // namespace kiln::reference
