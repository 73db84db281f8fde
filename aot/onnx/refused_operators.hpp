// Operators that Kiln refuses on purpose, with the advice to give.
#pragma once

#include <string_view>

namespace kiln::onnx_import {

// What to do about an operator that is not supported, or an empty string if there is no special advice.
std::string_view advice_about(std::string_view domain, std::string_view name);

}  // namespace kiln::onnx_import
