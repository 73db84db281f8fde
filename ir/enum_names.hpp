// Names of enumerators. To name the values 0..N-1 of an enum E, specialize enum_table<E> with `static constexpr
// std::array<std::string_view, N> names` in the order of the values.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace kiln {

template <class E>
struct enum_table;

template <class E>
constexpr std::string_view enum_name(E value) {
  return enum_table<E>::names[static_cast<std::size_t>(value)];
}

template <class E>
constexpr bool parse_enum(std::string_view text, E& value) {
  for (std::size_t i = 0; i < enum_table<E>::names.size(); ++i)
    if (enum_table<E>::names[i] == text) return value = static_cast<E>(i), true;
  return false;
}

}  // namespace kiln
