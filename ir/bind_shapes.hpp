// Derives the values of a program's symbols from the shapes of its inputs.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/enum_names.hpp"
#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln {

// The declared shape of one input and its actual shape.
struct given_shape {
  std::string name;
  shape declared, is;
};

// Returns the symbols that the input shapes determine. A dimension that is a single symbol binds it directly; any other
// expression is solved if exactly one of its symbols is still unbound. `given` are values that the caller has told;
// they are part of the result. Throws error{invalid_shape}, naming the input, the dimension and both values, if a rank,
// a type or a dimension disagrees with the declaration, with another input or with `given`.
dim_bindings bind_shapes(std::span<const given_shape> inputs, const dim_bindings& given = {});

// A dimension may depend on the elements of an integer or boolean input: element i of input NAME is the symbol
// "value.NAME.i".
inline constexpr std::string_view value_prefix = "value.";
// Largest element count of an input whose elements may become symbols.
inline constexpr std::int64_t max_value_elements = 64;
dim value_symbol(std::string_view input, std::int64_t element);
// The largest element, the smallest and the sum of such an input, which may have any size, are symbols, too:
// "value.NAME.max", "value.NAME.min" and "value.NAME.sum".
enum class summary : std::uint8_t { max, min, sum };
template <>
struct enum_table<summary> {
  static constexpr std::array<std::string_view, 3> names{"max", "min", "sum"};
};
dim value_symbol(std::string_view input, summary of_all);
// Whether one of the symbols stands for elements of this input.
bool decides_sizes(const std::map<std::string, dim_range>& symbols, std::string_view input);
// Returns those symbols of `wanted` that stand for elements of this input, with their values.
dim_bindings bind_values(const std::map<std::string, dim_range>& wanted, const std::string& input, const literal& data);

// Adds `more` to `sizes`. Throws error{invalid_shape} if one of them is there with another value.
void add_sizes(dim_bindings& sizes, const dim_bindings& more, const std::string& input);

// Solves expression == target for `symbol`. Returns the solution if it is unique and >= 0: the expression must be
// linear in the symbol, or its quotients, minima and maxima must still leave only one solution. Otherwise returns
// nullopt.
std::optional<std::int64_t> solve_dim(const dim& expression, const std::string& symbol, std::int64_t target);

}  // namespace kiln
