// The version of each standard ONNX operator that the importer implements. A model's opset selects, for each operator,
// the newest version that is not newer than the opset. Most operators keep their version over many opsets.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace kiln::onnx_import {

// The newest opset that the table covers. A model with a newer opset is imported as if it had this one, with a warning.
inline constexpr int newest_opset = 28;

// `newest` is the newest version that we implement. `unknown_from` is the next version in the standard, if there is
// one: it changes the semantics in a way that we do not implement, or removes the operator.
struct operator_version {
  std::string_view name;
  int newest;
  std::optional<int> unknown_from = std::nullopt;

  int last_opset() const { return unknown_from ? *unknown_from - 1 : newest_opset; }
};

// Sorted by name.
std::span<const operator_version> operator_versions();
// Returns null for names that are not in the standard domain or that we do not implement.
const operator_version* find_operator_version(std::string_view name);

}  // namespace kiln::onnx_import
