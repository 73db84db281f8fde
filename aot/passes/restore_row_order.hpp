// Computes products on rows in the order in which they are stored. Models with multi-head attention as torch exports it
// turn tokens [batch, position, channel] to [position, batch, channel], compute a product of these rows, and turn the
// result again. A product, a normalization of channels and elementwise operations do not care about the order of rows:
// the pass computes them on the rows before the transpose and moves the transpose behind them, where it meets the next
// one. It does so if more transposes vanish than new ones are needed.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct restore_row_order {
  std::string_view name() const { return "restore_row_order"; }
  bool apply(module& m) const;
};

}  // namespace kiln
