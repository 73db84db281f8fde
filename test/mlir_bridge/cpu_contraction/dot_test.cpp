#include <gtest/gtest.h>

#include <algorithm>

#include "fusions.hpp"
#include "harness.hpp"

namespace kiln::test {
namespace {

TEST(dots, of_odd_sizes) {
  const std::int64_t sizes[] = {1, 2, 3, 7, 13, 17, 31, 33, 65};
  // Uses every size in every position, without testing all combinations.
  for (std::size_t i = 0; i < std::size(sizes); ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      const std::int64_t m = sizes[i], n = sizes[(i + 3 * j + 1) % std::size(sizes)],
                         k = sizes[(i * 2 + j) % std::size(sizes)];
      auto fusion = dot_fusion({m, k}, {k, n}, {});
      expect_matches(*fusion, 1e-6);
      if (HasFatalFailure()) return;
    }
}

TEST(dots, of_transposed_operands) {
  for (bool a : {false, true})
    for (bool b : {false, true})
      for (auto [m, n, k] : {std::array<std::int64_t, 3>{1, 33, 65}, {5, 17, 31}, {29, 65, 7}, {50, 40, 130}}) {
        auto fusion = dot_fusion(a ? dims_of{k, m} : dims_of{m, k}, b ? dims_of{n, k} : dims_of{k, n},
                                 {.transpose_a = a, .transpose_b = b});
        expect_matches(*fusion, 1e-6);
        if (HasFatalFailure()) return;
      }
}

TEST(dots, of_batches) {
  for (std::int64_t m : {1, 7, 65})
    for (bool b : {false, true}) {
      auto fusion = dot_fusion({2, 3, m, 33}, b ? dims_of{2, 3, 35, 33} : dims_of{2, 3, 33, 35}, {.transpose_b = b});
      expect_matches(*fusion, 1e-6);
      if (HasFatalFailure()) return;
    }
}

TEST(dots, of_few_rows_of_many_matrices) {
  for (std::int64_t m : {1, 2, 3, 4})
    for (auto [n, k] : {std::array<std::int64_t, 2>{37, 64}, {130, 71}, {3, 5}, {64, 300}}) {
      auto transposed = dot_fusion({2, 3, m, k}, {2, 3, n, k}, {.transpose_b = true}, element_type::f32,
                                   element_type::f32, epilogue::bias_relu_residual);
      expect_matches(*transposed, 1e-6);
      auto plain = dot_fusion({5, m, k}, {5, k, n}, {}, element_type::f16, element_type::f16, epilogue::sigmoid);
      expect_matches(*plain, 2e-3);
      if (HasFatalFailure()) return;
    }
}

// Matrices that are larger than the caches: lines are asked for ahead, and narrow ones are divided among threads, with
// parts that end in the middle of a group of lines.
TEST(dots, of_few_rows_and_large_matrices) {
  for (std::int64_t m : {1, 2})
    for (auto [n, k] : {std::array<std::int64_t, 2>{97, 6001}, {1000, 601}, {5003, 37}})
      for (bool transposed : {false, true}) {
        auto fusion = dot_fusion(transposed ? dims_of{k, m} : dims_of{m, k}, {k, n}, {.transpose_a = transposed},
                                 element_type::f32, element_type::f32, epilogue::bias_relu_residual);
        expect_matches(*fusion, 2e-6);
        if (HasFatalFailure()) return;
      }
  auto fusion = dot_fusion({1, 9000}, {9000, 130}, {}, element_type::f16, element_type::f16, epilogue::sigmoid);
  expect_matches(*fusion, 2e-3);
  fusion = dot_fusion({2, 101}, {101, 70}, {}, element_type::f32, element_type::f32, epilogue::bias_relu);
  for (std::int64_t splits : {1, 3, 7})
    expect_matches(*fusion, 1e-6, {{"splits", splits}, {"prefetch", splits - 1}, {"lines", 4}});
}

// A depth for which the sums of a narrow product do not stay in the cache.
TEST(dots, whose_sums_exceed_the_cache) {
  for (std::int64_t m : {1, 2}) {
    auto fusion = dot_fusion({m, 9}, {9, 9001}, {}, element_type::f32, element_type::f32, epilogue::bias_relu);
    expect_matches(*fusion, 1e-6);
    if (HasFatalFailure()) return;
  }
}

TEST(dots, of_every_type) {
  struct row {
    element_type a, b, result;
    double tolerance;
  };
  for (row r : {row{element_type::f64, element_type::f64, element_type::f64, 1e-14},
                row{element_type::f16, element_type::f16, element_type::f16, 2e-3},
                row{element_type::bf16, element_type::bf16, element_type::bf16, 1e-2},
                row{element_type::f16, element_type::f16, element_type::f32, 1e-5},
                row{element_type::f8e4m3, element_type::f8e4m3, element_type::f32, 1e-6},
                row{element_type::f8e5m2, element_type::f8e5m2, element_type::f32, 1e-6},
                row{element_type::i8, element_type::i8, element_type::i32, 0},
                row{element_type::u8, element_type::u8, element_type::i32, 0},
                row{element_type::u8, element_type::i8, element_type::i32, 0}})
    for (std::int64_t m : {1, 5, 33}) {
      auto fusion = dot_fusion({m, 37}, {37, 41}, {.type = r.result}, r.a, r.b);
      SCOPED_TRACE(std::string(name(r.a)));
      expect_matches(*fusion, r.tolerance);
      auto batched = dot_fusion({3, m, 37}, {3, 41, 37}, {.transpose_b = true, .type = r.result}, r.a, r.b);
      expect_matches(*batched, r.tolerance);
      if (HasFatalFailure()) return;
    }
}

// A tile multiplies a scalar by two vectors of columns. One that meets more of them is converted before, and so are all
// floats of 8 bits.
TEST(dots, convert_scalars_of_8_and_16_bits_once) {
  const auto stages = [](std::int64_t columns, element_type type) {
    const native_kernel kernel = compile_fusion(*dot_fusion({19, 70}, {70, columns}, {}, type, type), v4_row());
    return std::ranges::count_if(kernel.launches, [](const launch& l) { return l.symbol.ends_with("_widen"); });
  };
  for (element_type type : {element_type::f16, element_type::bf16}) {
    EXPECT_EQ(stages(16, type), 0);
    EXPECT_EQ(stages(200, type), 1);
  }
  EXPECT_EQ(stages(16, element_type::f8e4m3), 1);
  EXPECT_EQ(stages(200, element_type::f32), 0);
}

TEST(dots, take_every_epilogue) {
  for (epilogue kind : all_epilogues())
    for (auto [m, n, k] : {std::array<std::int64_t, 3>{1, 100, 64}, {30, 32, 16}, {45, 77, 33}, {128, 64, 8}}) {
      auto fusion = dot_fusion({m, k}, {k, n}, {}, element_type::f32, element_type::f32, kind);
      expect_matches(*fusion, 1e-6);
      if (HasFatalFailure()) return;
    }
}

TEST(dots, agree_in_every_configuration) {
  auto fusion =
      dot_fusion({61, 100}, {100, 111}, {}, element_type::f32, element_type::f32, epilogue::bias_relu_residual);
  for (std::int64_t m : {1, 4, 14})
    for (std::int64_t n : {16, 32, 64})
      for (std::int64_t pack : {0, 1}) {
        expect_matches(*fusion, 1e-6, {{"tile_m", m}, {"tile_n", n}, {"unroll", m % 3 + 1}, {"pack", pack}});
        if (HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace kiln::test
