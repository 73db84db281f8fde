#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

const literal nine = tensor({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});

TEST(gather, counts_negative_indices_from_the_end) {
  expect_values(run(gather{0}, {nine, indices({2}, {-1, 0})}), {2, 3}, {7, 8, 9, 1, 2, 3});
  expect_values(run(gather{-1}, {nine, indices({2, 1}, {2, -3})}), {3, 2, 1}, {3, 1, 6, 4, 9, 7});
  expect_values(run(gather{1}, {nine, tensor(element_type::i32, {}, {1})}), {3}, {2, 5, 8});
  expect_values(run(gather{0}, {nine, indices({0}, {})}), {0, 3}, {});
  expect_integers(run(gather{0}, {tensor(element_type::u4, {3}, {9, 15, 1}), indices({3}, {2, 1, 1})}), {3},
                  {1, 15, 15});
  expect_error(error_kind::invalid_model, "gather: index 3 is outside an axis of 3",
               [] { run(gather{0}, {nine, indices({1}, {3})}); });
  expect_error(error_kind::invalid_model, "gather: index -4 is outside an axis of 3",
               [] { run(gather{0}, {nine, indices({1}, {-4})}); });
  expect_error(error_kind::invalid_model, "indices must be i32 or i64",
               [] { run(gather{0}, {nine, tensor({1}, {0})}); });
  dim sequence = dim::symbol("sequence");
  EXPECT_EQ(
      (gather{0}
           .infer(std::vector<shape>{shape_of(element_type::f16, {100, 8}), {element_type::i64, {1, sequence}}})[0]
           .str()),
      "f16[1, sequence, 8]");
}

TEST(gather_elements, one_index_per_element) {
  expect_values(run(gather_elements{1}, {nine, indices({3, 2}, {0, -1, 1, 1, 2, 0})}), {3, 2}, {1, 3, 5, 5, 9, 7});
  expect_values(run(gather_elements{0}, {nine, indices({1, 3}, {2, 0, -2})}), {1, 3}, {7, 2, 6});
  expect_error(error_kind::invalid_model, "indices are longer than data along axis 0",
               [] { run(gather_elements{1}, {nine, indices({4, 1}, {0, 0, 0, 0})}); });
}

TEST(gather_nd, tuples_and_batches) {
  expect_values(run(gather_nd{0}, {nine, indices({2, 2}, {0, 2, -1, -3})}), {2}, {3, 7});
  expect_values(run(gather_nd{0}, {nine, indices({2, 1}, {2, 0})}), {2, 3}, {7, 8, 9, 1, 2, 3});
  // onnxruntime, batch_dims=1
  expect_values(run(gather_nd{1}, {pattern({2, 3, 2}, 1), indices({2, 1, 1}, {1, -3})}), {2, 1, 2},
                {0.625, -0.5, -1, 0.75});
  expect_error(error_kind::invalid_model, "longer than the rank",
               [] { run(gather_nd{0}, {nine, indices({1, 3}, {0, 0, 0})}); });
  expect_error(error_kind::invalid_model, "batch dimensions differ",
               [] { run(gather_nd{1}, {nine, indices({2, 1}, {0, 0})}); });
}

TEST(scatter_elements, replaces_in_order) {
  literal where = indices({2, 3}, {0, 2, -2, 0, 0, 0});
  literal updates = tensor({2, 3}, {10, 20, 30, 40, 50, 60});
  expect_values(run(scatter_elements{0}, {nine, where, updates}), {3, 3}, {40, 50, 60, 4, 5, 30, 7, 20, 9});
  expect_integers(run(scatter_elements{0}, {tensor(element_type::boolean, {3}, {0, 0, 0}), indices({1}, {1}),
                                            tensor(element_type::boolean, {1}, {1})}),
                  {3}, {0, 1, 0});
}

TEST(scatter_elements, combines) {
  literal where = indices({1, 3}, {0, 0, 0});
  literal data = tensor({1, 3}, {5, 2, 3}), updates = tensor({1, 3}, {4, -6, 7});
  expect_values(run(scatter_elements{1, scatter_reduction::add}, {data, where, updates}), {1, 3}, {10, 2, 3});
  expect_values(run(scatter_elements{1, scatter_reduction::mul}, {data, where, updates}), {1, 3}, {-840, 2, 3});
  expect_values(run(scatter_elements{1, scatter_reduction::min}, {data, where, updates}), {1, 3}, {-6, 2, 3});
  expect_values(run(scatter_elements{1, scatter_reduction::max}, {data, where, updates}), {1, 3}, {7, 2, 3});
  std::int64_t big = (std::int64_t(1) << 60) + 1;
  expect_integers(run(scatter_elements{0, scatter_reduction::add},
                      {indices({1}, {big}), indices({2}, {0, -1}), indices({2}, {1, 1})}),
                  {1}, {big + 2});
  // onnxruntime, axis 0, mul
  expect_values(run(scatter_elements{0, scatter_reduction::mul},
                    {pattern({3, 3}, 1), indices({2, 3}, {0, 2, -2, 1, 0, 0}), pattern({2, 3}, 2)}),
                {3, 3}, {0, 0.28125, -0.859375, -0.4375, 1.25, -0.109375, -1, 0.1875, -0.375});
}

TEST(scatter_nd, replaces_and_adds_blocks) {
  expect_values(run(scatter_nd{}, {nine, indices({2, 1}, {-1, 0}), tensor({2, 3}, {10, 20, 30, 40, 50, 60})}), {3, 3},
                {40, 50, 60, 4, 5, 6, 10, 20, 30});
  // onnxruntime, add with a repeated tuple
  expect_values(run(scatter_nd{scatter_reduction::add},
                    {pattern({3, 2, 2}, 1), indices({3, 2}, {0, 1, 2, 0, 0, 1}), pattern({3, 2}, 2)}),
                {3, 2, 2}, {0, -1.125, 1.75, -1.625, 1.25, 0.125, -1, 0.75, -1.25, 2.25, 0.25, -0.875});
  expect_error(error_kind::invalid_model, "updates do not match",
               [] { run(scatter_nd{}, {nine, indices({2, 1}, {0, 1}), tensor({2, 2}, {1, 2, 3, 4})}); });
  expect_error(error_kind::invalid_model, "scatter_nd: index 3 is outside",
               [] { run(scatter_nd{}, {nine, indices({1, 2}, {0, 3}), tensor({1}, {1})}); });
}

}  // namespace
}  // namespace kiln::testing
