#include "aot/onnx/ops/text_choice.hpp"

#include <algorithm>

namespace kiln::onnx_import {

void require_one_of(std::string_view attribute, std::string_view text, std::span<const std::string_view> known) {
  if (std::ranges::find(known, text) != known.end()) return;
  std::string list;
  for (std::string_view name : known) list += (list.empty() ? "" : ", ") + std::string(name);
  invalid(std::string(attribute) + " is '" + std::string(text) + "', not one of " + list);
}

}  // namespace kiln::onnx_import
