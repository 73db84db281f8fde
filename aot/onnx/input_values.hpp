// Inputs whose elements are given at import (`--value`), and the inputs that a value depends on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aot/onnx/graph.hpp"
#include "aot/onnx/node.hpp"
#include "ir/bind_shapes.hpp"

namespace kiln::onnx_import {

// Returns the constant that replaces an input. An open dimension of a vector is set to the number of given elements.
// Throws error{usage} if the elements do not fit the input's type or dims.
value given_input(builder& b, const std::string& name, const shape& declared, const std::vector<std::string>& elements);

// Throws error{usage} if a value is given for an input that the graph does not have.
void check_given_inputs(const import_options& options, const ::onnx::GraphProto& graph);

// Elements of inputs that decide sizes are taken to be at least 0. Where an operator gives negative ones a meaning (-1
// in the shape of a Reshape, places of a Slice that count from the end), it throws this, and the import starts again
// with `least` as the least value of this symbol.
class negative_value_wanted : public error {
 public:
  negative_value_wanted(std::string symbol, std::int64_t least)
      : error(error_kind::unsupported, "a negative value of '" + symbol + "'"),
        symbol(std::move(symbol)),
        least(least) {}
  std::string symbol;
  std::int64_t least;
};

// Returns whether the operator must allow for negative values of d, down to `least`: d is an element of an input.
// Throws negative_value_wanted if it is the first to ask for this element.
bool may_be_negative(node& n, const dim& d, std::int64_t least);
// The least value of an element of an input that has become a symbol.
std::int64_t least_value(const import_state& state, const dim& symbol);

// That the elements are at least 0 is checked at run time for the symbols of the program. A comparison may have relied
// on it for others. Of an input that decides no size, every element is such a one: these inputs are returned with their
// symbols, so that an import can leave them unknown. If an input decides some size, all its elements become symbols of
// the program.
std::map<std::string, std::vector<dim>> check_values(import_state& state);

// If all elements of an input, possibly converted and reshaped, are reduced to `result`, and elements of inputs may
// decide sizes (import_state::values_as_symbols), then `result` is known to be a symbol.
void know_summary(node& n, summary s, value data, value result);
// The last of the running sums of a vector is the sum of all.
void know_last_sum(node& n, value sums, value index, value result);

// The parameters of the module that v depends on, in order of first use.
std::vector<std::string> inputs_behind(value v);

// Returns advice for the user on how to make v known at import: "give input 'axes' with --value axes=..., or ...".
std::string advice_to_know(value v);

}  // namespace kiln::onnx_import
