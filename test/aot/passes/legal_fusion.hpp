// What holds of every kernel that the formation makes.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "aot/kernels/traits.hpp"
#include "ir/normalized_window.hpp"
#include "ir/ops/all.hpp"
#include "ir/ops/cache_update.hpp"
#include "ir/program.hpp"

namespace kiln::testing {

// Checks the rules of a fusion (formation.hpp): at most one anchor besides a window that it normalizes and inner
// anchors (mlir_bridge/kinds/kind.hpp), equal dims of all outputs but the caches that attention appends to, and besides
// these only inlinable operations and scalars.
inline void expect_legal(const module& fusion) {
  std::size_t anchors = 0;
  for (const instruction& i : fusion.instructions()) {
    anchors += role_of(i.op()) == kernel_role::anchor;
    anchors -= find_normalized_window(i) != nullptr;
    if (i.op().is<constant>()) {
      EXPECT_EQ(i.outputs()[0].rank(), 0u) << fusion.str();
    }
    EXPECT_FALSE(i.op().is<code_object>() || !i.bodies().empty());
    EXPECT_TRUE(i.origin().empty());
  }
  if (anchors > 1) {
    for (const instruction& i : fusion.instructions())
      if (role_of(i.op()) == kernel_role::anchor)
        EXPECT_TRUE(i.op().is<dot>() || i.op().is<normalize>() || i.op().is<cache_update>() ||
                    (i.op().is<attention>() && i.users().empty()))
            << fusion.str();
  }
  ASSERT_FALSE(fusion.outputs().empty());
  const bool appends = fusion.outputs().back().producer->op().is<attention>();
  for (value v : fusion.outputs()) {
    if (v.producer->outputs().size() > 1 || (appends && v.producer->op().is<cache_update>())) continue;
    EXPECT_EQ(v.type().dims, fusion.outputs().back().type().dims) << fusion.str();
  }
  for (std::size_t k = 0; k < fusion.parameters().size(); ++k)
    EXPECT_EQ(module::parameter_name(fusion.parameters()[k]), "p" + std::to_string(k));
  fusion.validate();
}

}  // namespace kiln::testing
