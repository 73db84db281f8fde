// Rewrites of convolutions whose images have one pixel along a spatial axis, as one-dimensional layers have that
// exporters write for images.
#pragma once

#include "aot/passes/rewrite.hpp"

namespace kiln {

// Of a window over an axis with one pixel, all but one element lie on the padding: [k, 3] over [H, 1] becomes [k, 1].
value windows_over_one_pixel(rewriter& write, value root, const match::captures& found);

// A column of pixels [H, 1] becomes a row [1, H]: generators compute blocks of pixels that are next to each other in a
// row.
value column_as_row(rewriter& write, value root, const match::captures& found);

}  // namespace kiln
