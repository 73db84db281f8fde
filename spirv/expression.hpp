// The expression language of shape rules, launch rules and arguments (spirv/README.md): numbers, attributes,
// dim(input0, 1), elements(output0), rank(input0), product(input0, first, last), type(input0) == float32, has(input1),
// item(pads, 0), length(pads) of a list, + - * / %, comparisons, && || !, ?:, min, max, ceil_div, floor(real),
// real(integer).
// Integer `/` of numbers rounds toward zero; of symbolic dims it gives floor(a / b). A real operand makes the result
// real. All functions are pure. Errors are thrown as expression_error, an error{invalid_model} with an offset into the
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
  // Checks only the grammar and the names: every tensor has every dimension, each of size 1.
  bool checking = false;
  // Conditions on open dims give an expression that is 1 where they hold and 0 elsewhere, and ?: chooses by it. A
  // choice evaluates both of its values then.
  bool open_conditions = false;
};

// Conditions need numbers unless the scope has open conditions; they throw error{unsupported} for open dims.
dim evaluate_integer(std::string_view text, const expression_scope& scope);
// The same, but 1 for every number that is not 0.
dim evaluate_condition(std::string_view text, const expression_scope& scope);
double evaluate_real(std::string_view text, const expression_scope& scope);

// Accepts "float32", "f16", "type(input0)".
element_type evaluate_type(std::string_view text, const expression_scope& scope);
// Accepts "same_as(input0)", "dims(dim(input0, 0), 4)", "broadcast(input0, input1)", "with_dim(input0, axis, k)",
// "with_last(input0, height, width)", and "list(shape)" for an attribute that is a list of sizes.
std::vector<dim> evaluate_dims(std::string_view text, const expression_scope& scope);

// Splits "input3" into {"input", 3}; also accepts "output0" and "scratch1". Returns nullopt for any other text.
std::optional<std::pair<std::string_view, std::uint32_t>> parse_buffer(std::string_view text);

// The name of the attribute that marks an input as omitted by its node. The name contains a blank, so no source can
// declare it. An omitted input is an empty float32 tensor; has() recognizes it by this attribute.
std::string left_out_input(std::uint32_t index);

// Splits the arguments of a call or macro at top-level commas and trims them.
std::vector<std::string_view> split_arguments(std::string_view text);

}  // namespace kiln::spirv
