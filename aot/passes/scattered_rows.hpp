// Rewrites a ScatterElements whose indices depend on one axis only, as exporters write the update of a cache: whole
// rows are replaced. Then one tensor tells for each row which update it gets, and all caches share it.
#pragma once

#include "aot/passes/rewrite.hpp"

namespace kiln {

// Returns where(taken, updates[owner], data), or null if `root` is no such scatter.
value scattered_rows(rewriter& write, value root);

}  // namespace kiln
