// Products of few rows with 4-bit weights whose groups share a scale (gpu/contraction/packed_weights.hpp): when their
// codes are the instructions' rows, and that the kernels need no local memory. Numbers are compared in the emulator
// (test/emulation/cases_matrix.py) and on GPUs (bench/gpu/operator_kernels.py).
#include <gmock/gmock.h>

#include <string>

#include "gpu_targets.hpp"
#include "jit/targets.hpp"

namespace kiln::test {
namespace {

constexpr auto f16 = element_type::f16;

struct weights_case {
  std::int64_t rows = 1, depth = 4096, columns = 4096, group = 128;
  element_type codes = element_type::i4;
};

std::unique_ptr<module> product_of(const weights_case& c) {
  const std::int64_t groups = c.depth / c.group;
  const std::vector<dim> apart{c.columns, groups, c.group};
  return gpu_fusion({shape{f16, {c.rows, c.depth}}, shape{c.codes, apart}, shape{f16, {c.columns, groups, 1}}},
                    [&](module& m, const std::vector<value>& p) {
                      const value numbers = m.add(convert{f16}, {p[1]}), scales = m.add(broadcast{apart}, {p[2]});
                      const value scaled = m.add(elementwise{scalar_function::mul}, {numbers, scales});
                      const value weights = m.add(reshape{{c.columns, c.depth}}, {scaled});
                      return std::vector<value>{m.add(dot{.transpose_b = true, .type = f16}, {p[0], weights})};
                    });
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::string ptx_of(const weights_case& c, const std::string& target = "sm_90") {
  const native_kernel kernel = finalize_for(*product_of(c), find_target(target));
  return {reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size() - 1};
}

// One instruction and one mask for two codes; the scale multiplies the sums of its group.
constexpr const char *product = "mma.sync.aligned.m16n8k16", *mask_and_sign = "0x6a;";

TEST(packed_weights, codes_are_multiplied_and_scales_applied_to_sums) {
  for (const char* target : {"sm_80", "sm_90"})
    for (element_type codes : {element_type::i4, element_type::u4}) {
      const std::string ptx = ptx_of({.codes = codes}, target);
      // A step of a wave: 16 columns x 128 codes, four times.
      EXPECT_EQ(count(ptx, product), 32u);
      EXPECT_EQ(count(ptx, mask_and_sign), 128u);
      EXPECT_THAT(ptx, testing::Not(testing::HasSubstr("mul.rn.f16x2")));
    }
  EXPECT_EQ(count(ptx_of({.rows = 8}), mask_and_sign), 128u);
}

TEST(packed_weights, others_are_unpacked_and_scaled) {
  EXPECT_EQ(count(ptx_of({.rows = 9}), mask_and_sign), 0u) << "more rows than the instruction has columns";
  EXPECT_EQ(count(ptx_of({.group = 32}), mask_and_sign), 0u) << "a step has several groups";
  EXPECT_EQ(count(ptx_of({.depth = 640}), mask_and_sign), 0u) << "waves do not have whole steps";
}

// Workgroups of one column would need several rounds, or those of two are one for each unit.
TEST(packed_weights, many_columns_are_taken_in_pairs) {
  const auto last_launch = [](std::int64_t depth, std::int64_t columns) {
    return finalize_for(*product_of({.depth = depth, .columns = columns}), find_target("sm_90")).launches.back();
  };
  EXPECT_EQ(last_launch(2048, 4096).grid, 4096 / 16);
  EXPECT_EQ(last_launch(2048, 8192).grid, 8192 / 32);
  EXPECT_EQ(last_launch(4096, 4096).grid, 4096 / 32);
  EXPECT_EQ(last_launch(4096, 4096).block, 512);
  EXPECT_EQ(last_launch(4096, 2048).grid, 2048 / 16);
}

TEST(packed_weights, any_depth_and_columns) {
  for (const weights_case& c : {weights_case{.rows = 5},
                                {.rows = 16},
                                {.depth = 2048, .columns = 200},
                                {.depth = 11264, .columns = 64, .group = 256},
                                {.depth = 512, .group = 512}})
    for (const char* target : {"sm_80", "sm_90"})
      EXPECT_THAT(ptx_of(c, target), testing::Not(testing::HasSubstr(".local"))) << c.depth << " " << c.columns;
}

}  // namespace
}  // namespace kiln::test
