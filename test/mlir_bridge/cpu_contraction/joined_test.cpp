// Kernels with inner anchors compute on a CPU what the anchors compute one after another.
#include "joined.hpp"

#include <gtest/gtest.h>

#include "harness.hpp"

namespace kiln::test {
namespace {

TEST(joined_anchors, products_of_normalized_rows) {
  for (std::int64_t m : {1, 3, 8, 33})
    for (bool transposed : {false, true})
      for (joined parts : {joined::normalization, joined::second, joined::both}) {
        expect_matches(*joined_product(m, 96, 72, parts, element_type::f16, transposed), 3e-3);
        expect_matches(*joined_product(m, 96, 72, parts, element_type::f32, transposed), 1e-5);
        if (HasFatalFailure()) return;
      }
}

TEST(joined_anchors, caches) { expect_matches(*joined_caches(), 0); }

TEST(joined_anchors, attention_to_caches_with_an_appended_row) {
  for (std::int64_t layers : {0, 3}) {
    expect_matches(*joined_attention(2, 40, layers), 3e-3);
    expect_matches(*joined_attention(1, 9, layers, element_type::f32, 24), 1e-5);
  }
}

}  // namespace
}  // namespace kiln::test
