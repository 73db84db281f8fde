// Digests of the sources, flags and libraries that the output of each back end depends on. The build makes them
// (cmake/code_digests.cmake) and cache keys hold them: code that another Kiln generated is found only where every
// source of that back end was the same. Any thread.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "ir/code_object.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

struct code_digest_row {
  std::string_view back_end;  // "cpu", "amd", "nvidia", "spirv"
  std::string_view digest;    // 64 hexadecimal digits
};

// All digests. They are in a generated source of their own: if one changes, nothing else is compiled again.
std::span<const code_digest_row> code_digests();

// Returns the identity of the code that finalizes kernels of this format for targets of this family: one digest, or two
// with a space between them for amdgcnspirv, which the SPIR-V reader and the family's back end finalize.
std::string compiler_code(target_family family, code_format format = code_format::mlir_bytecode);

}  // namespace kiln
