// The small language of shape rules, launch rules and arguments (spirv/README.md): numbers, attributes, dim(input0, 1),
// elements(output0), rank(input0), product(input0, first, last), type(input0) == float32, has(input1), item(pads, 0),
// length(pads) of a list, + - * / %, comparisons, && || !, ?:, min, max, ceil_div, floor(real), real(integer).
// `/` of integers rounds toward zero, exactly where dims are symbolic; a real operand makes the result real. Pure
// functions of their arguments. Mistakes throw expression_error, an error{invalid_model} that knows its place in the
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/error.hpp"
#include "ir/shape.hpp"

namespace kiln::spirv {

using attribute_value = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;
using attribute_values = std::vector<std::pair<std::string, attribute_value>>;

class expression_error : public error {
 public:
  expression_error(std::string_view text, std::size_t at, const std::string& what)
      : error(error_kind::invalid_model, "'" + std::string(text) + "': " + what), at_(at), reason_(what) {}
  std::size_t at() const { return at_; }  // offset in the text
  const std::string& reason() const { return reason_; }

 private:
  std::size_t at_;
  std::string reason_;
};

struct expression_scope {
  std::span<const shape> inputs, outputs;
  const attribute_values* attributes = nullptr;
  bool checking = false;  // looks only at the grammar and the names: every tensor has every dimension, all of them 1
};

dim evaluate_integer(
    std::string_view text,
    const expression_scope& scope);  // comparisons and ?: need numbers: error{unsupported} on open dims
double evaluate_real(std::string_view text, const expression_scope& scope);

// "float32", "f16", "type(input0)".
element_type evaluate_type(std::string_view text, const expression_scope& scope);
// "same_as(input0)", "dims(dim(input0, 0), 4)", "broadcast(input0, input1)", "with_dim(input0, axis, k)",
// "with_last(input0, height, width)", "list(shape)" for an attribute that is a list of sizes.
std::vector<dim> evaluate_dims(std::string_view text, const expression_scope& scope);

// "input3" as {"input", 3}; "output0", "scratch1" likewise. Nothing for any other text.
std::optional<std::pair<std::string_view, std::uint32_t>> parse_buffer(std::string_view text);

// The name of the attribute (no source can declare it: it has a blank) that an object has for each input that its node
// leaves out. Such an input is an empty float32 tensor, and has() tells it from others.
std::string left_out_input(std::uint32_t index);

// Arguments of a call or macro, split at its top-level commas, without the blanks around them.
std::vector<std::string_view> split_arguments(std::string_view text);

}  // namespace kiln::spirv
