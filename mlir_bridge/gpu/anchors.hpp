// The GPU generators: one row for each anchor, all of them in one table by operation name. A generator emits complete stages that write
// every output of the cluster; it throws error{unsupported} naming what it cannot do. Internal to mlir_bridge/gpu.
#pragma once

#include <string_view>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::gpu {

using namespace codegen;

// A cluster without an anchor.
void emit_map(kernel_emitter& e);
// The same for one value of the cluster, into scratch (kernel_emitter::materialize).
void emit_map_into(kernel_emitter& e, value v, const buffer& destination, bool prepare);

struct generator_row {
  std::string_view operation;
  void (*emit)(kernel_emitter&);
  bool wide_indices = false;   // whether the generator's indices must be 64 bits wide
};
// Null for an operation that is no anchor.
const generator_row* find_generator(std::string_view operation);

}  // namespace kiln::gpu
