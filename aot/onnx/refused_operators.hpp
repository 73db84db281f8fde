// Operators that Kiln refuses on purpose, with advice for the user.
#pragma once

#include <string_view>

namespace kiln::onnx_import {

// Returns advice on an operator that is not supported, or an empty string.
std::string_view advice_about(std::string_view domain, std::string_view name);

}  // namespace kiln::onnx_import
