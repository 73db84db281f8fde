// Convolution with a window of 3×3 and stride 1 by Winograd's minimal filtering F(2×2, 3×3): 16 products per channel
// instead of 36 for each 2×2 pixels of the result. Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2015. In f32 its error is not larger than that of the direct sum. An infinite pixel makes all four pixels
// of a patch NaN, where the direct sum gives infinity for some of them.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

using namespace codegen;

// Returns 1 at the sizes at which the anchor is such a convolution and so large that the fewer products outweigh the
// transformations, else 0.
dim winograd_sizes(const kernel_emitter& e);
// Returns true if the sizes are known and suit it.
bool suits_winograd(const kernel_emitter& e);
// Emits it. The configuration has "patches" of a block, and "tile_m", "tile_n" and "unroll" as for other contractions.
// `used` is an expression of the open sizes: 1 where this algorithm computes the result, 0 where another one does.
void emit_winograd(kernel_emitter& e, const dim& used = 1);

}  // namespace kiln::cpu
