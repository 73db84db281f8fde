// The table of operations by name. `constant` is missing, because its literal is not an attribute: a reader of a
// program makes constants from the program's weights.
#include <algorithm>
#include <map>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "ir/ops/cache_update.hpp"
#include "ir/ops/choice.hpp"
#include "ir/ops/segment_sum.hpp"

namespace kiln {
namespace {

using maker = operation (*)(std::string_view name, const attribute_list& attributes);
using maker_table = std::map<std::string_view, maker>;

[[noreturn]] void unknown_attribute(std::string_view name, std::string_view attribute_name) {
  throw error(error_kind::unsupported, "operation " + std::string(name) + " has no attribute \"" +
                                           std::string(attribute_name) + "\": the file needs a newer Kiln");
}

template <class Op>
Op with_attributes(Op op, std::string_view name, const attribute_list& attributes) {
  std::size_t used = 0;
  Op::reflect(op, [&](std::string_view field_name, auto& field) {
    auto given = std::find_if(attributes.begin(), attributes.end(),
                              [&](const auto& attribute) { return attribute.first == field_name; });
    if (given != attributes.end()) detail::from_attribute(field_name, given->second, field), ++used;
  });
  if (used == attributes.size()) return op;
  for (const auto& [attribute_name, value] : attributes) {
    bool known = false;
    Op::reflect(op, [&](std::string_view field_name, auto&) { known = known || field_name == attribute_name; });
    if (!known) unknown_attribute(name, attribute_name);
  }
  throw error(error_kind::corrupted, "operation " + std::string(name) + " is given an attribute twice");
}

template <class Op>
operation make(std::string_view name, const attribute_list& attributes) {
  return with_attributes(Op{}, name, attributes);
}

// Elementwise operations are named after their function. A "function" attribute is allowed if it agrees.
operation make_elementwise(std::string_view name, const attribute_list& attributes) {
  elementwise named;
  parse_enum(name, named.function);
  elementwise result = with_attributes(named, name, attributes);
  if (result.function != named.function)
    throw error(error_kind::corrupted,
                "operation " + std::string(name) + " claims to be " + std::string(result.name()));
  return result;
}

template <class... Ops>
maker_table table_of() {
  maker_table table{{Ops{}.name(), &make<Ops>}...};
  for (const scalar_function_row& function : scalar_function_table) table.emplace(function.name, &make_elementwise);
  return table;
}

const maker_table& table() {
  static const maker_table instance =
      table_of<parameter, if_else, loop, choice, bounded, data_sizes, code_object, convert, bit_cast, broadcast,
               reshape, transpose, slice, pad, concat, gather, gather_elements, gather_nd, scatter_elements, scatter_nd,
               iota, resize, dot, convolution, transposed_convolution, reduce, arg_reduce, pooling, softmax, normalize,
               attention, cumulative_sum, segment_sum, cache_update, top_k, recurrent>();
  return instance;
}

}  // namespace

operation make_operation(std::string_view name, const attribute_list& attributes) {
  auto found = table().find(name);
  if (found == table().end())
    throw error(error_kind::unsupported,
                "unknown operation \"" + std::string(name) + "\": the file needs a newer Kiln");
  return found->second(name, attributes);
}

std::vector<std::string_view> operation_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, maker] : table()) names.push_back(name);
  return names;
}

}  // namespace kiln
