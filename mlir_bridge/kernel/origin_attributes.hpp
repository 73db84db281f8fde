// Attributes of a portable kernel that portable_kernel::specialize() has given all its sizes. They are not in files
// (codegen::open_origin).
#pragma once

namespace kiln {

inline constexpr char fewest_rows_attribute[] = "kiln.fewest_rows", static_inputs_attribute[] = "kiln.static_inputs";

}  // namespace kiln
