// The left factor of products of floats of 8 or 16 bits, which are summed in f32. A tile multiplies each scalar of it
// by a few vectors of columns only, and its conversion takes about as long as these products do. So the scalars of
// matrices that meet many columns are converted once, before.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

using namespace codegen;

// kernel_emitter::materialize(v), but elements of narrower floats are f32, in scratch that a stage of its own fills.
// Sizes may be open. No stage may be open.
buffer materialize_wide(kernel_emitter& e, value v);

}  // namespace kiln::cpu
