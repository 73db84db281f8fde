// The launches of an amdgcnspirv object for concrete shapes and a target, in both worlds: how an entry of the module is
// made for each, and how the runtime calls it. What our finalizer and ROCm's have in common. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "ir/native_kernel.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/targets/target_row.hpp"
#include "spirv/lowering/lowering.hpp"
#include "spirv/object.hpp"

namespace kiln {

// Sets scratch buffers and launches of `kernel`; the sites are in the same order. Shapes are static. Throws what
// spirv::resolve throws.
std::vector<spirv::launch_site> make_launches(const spirv::object& object, std::span<const shape> inputs,
                                              std::span<const shape> outputs, const target_row& target,
                                              native_kernel& kernel);

}  // namespace kiln
