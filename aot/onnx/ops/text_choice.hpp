// Attributes of text that have one of a few values.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "aot/onnx/node.hpp"
#include "ir/enum_names.hpp"

namespace kiln::onnx_import {

// Calls invalid() with the values that the attribute may have, unless `text` is one of them.
void require_one_of(std::string_view attribute, std::string_view text, std::span<const std::string_view> known);

// Returns the attribute, or `otherwise` if the node lacks it.
inline std::string one_of(const node& n, std::string_view attribute, std::string_view otherwise,
                          std::initializer_list<std::string_view> known) {
  std::string text = n.text(attribute, otherwise);
  require_one_of(attribute, text, std::span(known.begin(), known.size()));
  return text;
}

// The same for the names of an enumeration.
template <class Enum>
Enum enumerator_of(std::string_view attribute, std::string_view text) {
  require_one_of(attribute, text, enum_table<Enum>::names);
  Enum result{};
  parse_enum(text, result);
  return result;
}

}  // namespace kiln::onnx_import
