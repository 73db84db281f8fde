// The code of one kernel as readable text, as printed by `kiln inspect --emit`. The payload is parsed in this process;
// for payloads from files use text_in_worker (compile_worker.hpp).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/shape.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// `form` is "mlir" (only for MLIR bytecode; shapes and target are ignored), "llvm" (LLVM IR after optimization) or
// "asm". Throws error{unsupported} for a form that the payload does not have.
std::string emit_code(std::span<const std::byte> payload, std::span<const shape> inputs, const target_row& target,
                      std::string_view form);

}  // namespace kiln
