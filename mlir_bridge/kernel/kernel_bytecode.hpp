// A fusion as the payload of a code_object: one `kiln.kernel` (mlir_bridge/dialect/ops.td) in MLIR bytecode,
// labelled with the version of the dialect. Equal fusions give equal bytes: names of parameters and outputs, origins
// and locations are not written. Free functions without state, safe on any thread. This header needs no MLIR.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/module.hpp"

namespace kiln {

// The newest version of the dialect. write_kernel writes it if a kernel needs it; every version from 1 on can be read.
int dialect_version();

// `symbol` becomes a part of the bytes. Throws error{unsupported} for an operator that is not allowed in a kernel or a
// constant whose elements are not all equal, error{invalid_model} if shapes do not match.
std::vector<std::byte> write_kernel(const module& fusion, std::string_view symbol);

// Convert to and from MLIR's textual form. Throw as portable_kernel::parse does. The version of a text is always the
// current one.
std::string print_kernel(std::span<const std::byte> bytecode);
std::vector<std::byte> parse_kernel_text(std::string_view text);

}  // namespace kiln
