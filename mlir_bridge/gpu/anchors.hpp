// The GPU generators: one row for each anchor, all of them in one table by operation name. A generator emits complete
// stages that write every output of the cluster; it throws error{unsupported} naming what it cannot do. Internal to
// mlir_bridge/gpu.
#pragma once

#include <string_view>

#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/kinds/generation.hpp"

namespace kiln::gpu {

using namespace codegen;

// A cluster without an anchor.
void emit_map(kernel_emitter& e);
std::vector<candidate> map_choices(kernel_emitter& e);
// The same for one value of the cluster, into scratch (kernel_emitter::materialize).
void emit_map_into(kernel_emitter& e, value v, const buffer& destination, bool prepare);

// The row of a cluster's anchor; "" for a cluster without one. Null where the table has none.
const generator_row* find_generator(std::string_view operation);
generation begin_generation(const portable_kernel& kernel, const target_row& target,
                            const kernel_configuration& configuration);

}  // namespace kiln::gpu
