#include "aot/passes/integer_weights.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace kiln {
namespace {

struct column_walk {
  std::int64_t outer, columns, inner;
  column_walk(const shape& type, std::size_t axis) {
    const auto dims = type.static_dims();
    const auto at = dims.begin() + static_cast<std::ptrdiff_t>(axis);
    outer = std::accumulate(dims.begin(), at, std::int64_t{1}, std::multiplies<>());
    columns = *at;
    inner = std::accumulate(at + 1, dims.end(), std::int64_t{1}, std::multiplies<>());
  }
  template <class F>
  void each(F f) const {
    std::int64_t i = 0;
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t k = 0; k < inner; ++k, ++i) f(static_cast<std::size_t>(c), static_cast<std::size_t>(i));
  }
};

template <class T>
integer_weights make(const literal& data, std::size_t axis, std::vector<std::int64_t> zeros) {
  const std::span<const T> from = data.as<T>();
  const column_walk walk(data.type(), axis);
  const auto columns = static_cast<std::size_t>(walk.columns);
  if (zeros.size() == 1) zeros.assign(columns, zeros[0]);
  bool fits = true;
  walk.each([&](std::size_t c, std::size_t i) {
    const std::int64_t w = from[i] - zeros[c];
    fits &= w >= -128 && w <= 127;
  });
  // If weights minus zero points do not fit into signed bytes, shift unsigned weights and their zero points by 128.
  const std::int64_t shift = std::is_unsigned_v<T> ? 128 : 0;
  std::vector<std::byte> bytes(from.size());
  integer_weights made{.sums = std::vector<std::int64_t>(columns), .magnitudes = std::vector<std::int64_t>(columns)};
  walk.each([&](std::size_t c, std::size_t i) {
    const std::int64_t stored = from[i] - (fits ? zeros[c] : shift);
    bytes[i] = static_cast<std::byte>(stored);
    made.sums[c] += from[i] - zeros[c];
    made.magnitudes[c] += std::abs(stored);
  });
  made.elements = literal(data.type().with_type(element_type::i8), std::move(bytes));
  if (!fits)
    for (std::int64_t zero : zeros) made.zeros.push_back(zero - shift);
  return made;
}

}  // namespace

integer_weights make_integer_weights(const literal& data, std::size_t axis, const std::vector<std::int64_t>& zeros) {
  return data.type().type == element_type::u8 ? make<std::uint8_t>(data, axis, zeros)
                                              : make<std::int8_t>(data, axis, zeros);
}

}  // namespace kiln
