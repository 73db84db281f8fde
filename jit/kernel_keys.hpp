// Keys of the things that this folder caches.
#pragma once

#include "jit/cache/kernel_key.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// A native kernel made by this Kiln from `payload` (hex) for these shapes.
kernel_key make_kernel_key(const std::string& payload, const std::vector<shape>& inputs,
                           const std::vector<shape>& outputs, const kernel_configuration& configuration,
                           const target_row& target);

}  // namespace kiln
