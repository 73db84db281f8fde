#include "ir/ops/segment_sum.hpp"

#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

const literal rows = tensor({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});

TEST(segment_sum, adds_the_rows_of_each_id) {
  expect_values(run(segment_sum{3}, {rows, indices({4}, {0, 0, 2, 2})}), {3, 2}, {4, 6, 0, 0, 12, 14});
  expect_values(run(segment_sum{2}, {tensor({3}, {1, 2, 3}), tensor(element_type::i32, {3}, {0, 1, 1})}), {2}, {1, 5});
  expect_integers(run(segment_sum{1}, {tensor(element_type::u8, {2}, {200, 100}), indices({2}, {0, 0})}), {1}, {44});
}

TEST(segment_sum, rows_outside_of_all_segments_are_left_out) {
  expect_values(run(segment_sum{2}, {rows, indices({4}, {-1, 0, 1, 2})}), {2, 2}, {3, 4, 5, 6});
  expect_values(run(segment_sum{2}, {tensor({0, 2}, {}), indices({0}, {})}), {2, 2}, {0, 0, 0, 0});
  expect_values(run(segment_sum{0}, {rows, indices({4}, {0, 0, 1, 1})}), {0, 2}, {});
}

TEST(segment_sum, refuses_what_has_no_rows_or_other_ids) {
  expect_error(error_kind::invalid_model, "needs one id for each row",
               [] { run(segment_sum{2}, {rows, indices({3}, {0, 0, 0})}); });
  expect_error(error_kind::invalid_model, "needs data with rows",
               [] { run(segment_sum{2}, {tensor({}, {1}), indices({1}, {0})}); });
  expect_error(error_kind::invalid_model, "indices must be i32 or i64",
               [] { run(segment_sum{2}, {rows, tensor({4}, {0, 0, 0, 0})}); });
}

}  // namespace
}  // namespace kiln::testing
