// From the shapes of a program's inputs to the values of its symbols.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln {

// What one input is declared as, and what it is.
struct given_shape {
  std::string name;
  shape declared, is;
};

// The symbols that the inputs determine: a dimension that is one symbol gives it, and an expression gives the one
// symbol of it that nothing else does. Throws error{usage} where a rank, a type or a dimension disagrees with the
// declaration, naming input and dimension.
dim_bindings bind_shapes(std::span<const given_shape> inputs);

// A dimension may depend on the elements of an integer or boolean input: element i of input NAME is the symbol
// "value.NAME.i".
inline constexpr std::string_view value_prefix = "value.";
inline constexpr std::int64_t max_value_elements = 64;  // of an input whose elements may become symbols
dim value_symbol(std::string_view input, std::int64_t element);
// The symbols among `wanted` that elements of this input are.
dim_bindings bind_values(const std::map<std::string, dim_range>& wanted, const std::string& input, const literal& data);

// The only value >= 0 of the symbol for which the expression is `target`, where the expression is linear in it or a
// quotient, minimum or maximum does not make several values possible. nullopt otherwise.
std::optional<std::int64_t> solve_dim(const dim& expression, const std::string& symbol, std::int64_t target);

}  // namespace kiln
