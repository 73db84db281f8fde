// Makes the cache keys of native kernels.
#pragma once

#include "ir/code_object.hpp"
#include "jit/cache/kernel_key.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// The key of the native kernel that this version of Kiln makes from `payload` (hex hash) for these shapes.
kernel_key make_kernel_key(const std::string& payload, const std::vector<shape>& inputs,
                           const std::vector<shape>& outputs, const kernel_configuration& configuration,
                           const target_row& target, code_format format = code_format::mlir_bytecode);

}  // namespace kiln
