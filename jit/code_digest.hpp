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

// All of them. In a generated source of its own, so that a change of a digest compiles nothing else again.
std::span<const code_digest_row> code_digests();

// What makes native code out of a kernel of this format for a target of this family: one digest, or two with a space
// between them for amdgcnspirv, which the SPIR-V reader and the family's back end finalize.
std::string compiler_code(target_family family, code_format format = code_format::mlir_bytecode);

}  // namespace kiln
