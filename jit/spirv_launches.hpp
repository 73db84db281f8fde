// The launches of an amdgcnspirv object for a target and shapes, which may be open: both how the code generator makes
// the entry point of each launch, and how the runtime calls it. Shared by our finalizer and the ROCm candidate. Pure
// function; any thread may call it.
#pragma once

#include <span>
#include <vector>

#include "ir/native_kernel.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/targets/target_row.hpp"
#include "spirv/lowering/lowering.hpp"
#include "spirv/object.hpp"

namespace kiln {

// Sets the scratch buffers and launches of `kernel`, and its table of sizes and what bounds them if shapes are open.
// Returns the launch sites in the order of the launches. Throws what spirv::check_operands and spirv::resolve throw.
std::vector<spirv::launch_site> make_launches(const spirv::object& object, std::span<const shape> inputs,
                                              std::span<const shape> outputs, const target_row& target,
                                              native_kernel& kernel);

}  // namespace kiln
