// Products that a GPU computes together with the inner anchors of their kernel (gpu/contraction/joined_product.hpp):
// where that is one launch, where it is a launch for each, and that the kernels fit every target. Their numbers are
// compared in the emulator (test/emulation/cases_joined.py) and on GPUs (bench/gpu/llama_steps.py).
#include "test/mlir_bridge/cpu_contraction/joined.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "gpu_targets.hpp"
#include "jit/targets.hpp"

namespace kiln::test {
namespace {

using testing::HasSubstr;

std::size_t launches(const module& fusion, const std::string& target) {
  const native_kernel kernel = finalize_for(fusion, find_target(target));
  return static_cast<std::size_t>(std::ranges::count_if(kernel.launches, [](const launch& l) { return !l.prepare; }));
}

TEST(joined_anchors, fit_every_gpu) {
  for (std::int64_t m : {1, 8, 40}) {
    check_all_targets(*joined_product(m, 512, 256, joined::normalization));
    check_all_targets(*joined_product(m, 512, 256, joined::second));
    check_all_targets(*joined_product(m, 512, 256, joined::both, element_type::bf16, true));
  }
  check_all_targets(*joined_caches());
  check_all_targets(*joined_attention(2, 300, 2));
}

TEST(joined_anchors, few_rows_take_one_launch) {
  for (std::int64_t m : {1, 2, 8, 16})
    for (joined parts : {joined::normalization, joined::second, joined::both})
      for (const char* target : {"sm_80", "sm_90", "gfx942", "gfx1100", "gfx1201"})
        EXPECT_EQ(launches(*joined_product(m, 2048, 1024, parts), target), 1u) << target << " " << m;
  // Warpgroup instructions.
  for (std::int64_t m : {8, 24, 32, 56})
    for (joined parts : {joined::normalization, joined::second, joined::both}) {
      const native_kernel kernel = finalize_for(*joined_product(m, 2048, 8192, parts), find_target("sm_90"));
      ASSERT_EQ(kernel.launches.size(), 1u) << m;
      EXPECT_EQ(kernel.launches[0].tensor_maps.size(), parts == joined::normalization ? 2u : 3u);
      EXPECT_EQ(kernel.launches[0].early_arguments.size(), kernel.launches[0].tensor_maps.size() - 1);
    }
}

// The scale of many rows is not known before their products, so they are normalized first.
TEST(joined_anchors, two_products_of_many_rows_take_one_launch) {
  for (std::int64_t m : {65, 128, 300, 2048}) {
    const native_kernel kernel = finalize_for(*joined_product(m, 2048, 8192, joined::second), find_target("sm_90"));
    ASSERT_EQ(kernel.launches.size(), 1u) << m;
    EXPECT_EQ(kernel.launches[0].tensor_maps.size(), 3u);
    // In long runs, and where there are two tiles of rows that are no multiple of 64, pairs of workgroups share the
    // copies of the weights.
    const std::string text(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size());
    EXPECT_EQ(text.find(".multicast::cluster") != std::string::npos, m == 300 || m == 2048) << m;
    EXPECT_EQ(text.find("m64n152k16") != std::string::npos, m == 300) << m;
    EXPECT_EQ(launches(*joined_product(m, 2048, 8192, joined::both), "sm_90"), 2u);
    EXPECT_EQ(launches(*joined_product(m, 2048, 8192, joined::both), "sm_80"), 3u);
  }
}

// What a generator cannot compute together it computes one after another: a normalization, the gate, and the product.
TEST(joined_anchors, others_take_a_launch_for_each) {
  EXPECT_EQ(launches(*joined_product(40, 2048, 1024, joined::both), "sm_80"), 3u);
  EXPECT_EQ(launches(*joined_product(40, 2048, 1024, joined::both), "gfx1100"), 3u);
  EXPECT_EQ(launches(*joined_product(1, 2048, 1024, joined::both, element_type::f32), "sm_90"), 3u);
  // The rows would be read once more, but are no whole waves of 16 bytes.
  EXPECT_EQ(launches(*joined_product(1, 2056, 1024, joined::normalization), "gfx942"), 2u);
}

// One launch stores the rows of both caches; those that copy the caches are left out where a run may change them.
TEST(joined_anchors, caches_take_one_launch) {
  for (const char* target : {"sm_90", "gfx942", "gfx1100"}) {
    const native_kernel kernel = finalize_for(*joined_caches(), find_target(target));
    ASSERT_EQ(kernel.launches.size(), 3u);
    EXPECT_EQ(kernel.launches[0].copies, (launch::copied{1, 0}));
    EXPECT_EQ(kernel.launches[1].copies, (launch::copied{3, 1}));
    EXPECT_FALSE(kernel.launches[2].copies);
  }
}

// Attention of few rows stores the rows that its caches get, and so is one launch beside the copies of the caches. It
// starts early with one sequence; the workgroups of several would crowd on few compute units.
TEST(joined_anchors, attention_appends_to_its_caches) {
  for (std::int64_t batch : {1, 8, 100})
    for (std::int64_t layers : {0, 2}) {
      const native_kernel kernel = finalize_for(*joined_attention(batch, 1024, layers), find_target("sm_90"));
      ASSERT_EQ(kernel.launches.size(), 3u);
      EXPECT_TRUE(kernel.launches[0].copies && kernel.launches[1].copies);
      EXPECT_EQ(kernel.launches[0].copies->output, 0u);
      EXPECT_EQ(kernel.launches[1].copies->output, 1u);
      EXPECT_TRUE(kernel.launches[0].waits);
      EXPECT_EQ(kernel.launches[2].waits, batch == 1);
      // With several workgroups for each unit, smaller ones.
      if (batch == 100) EXPECT_EQ(kernel.launches[2].block, 128);
    }
}

// Long caches are divided among two workgroups for each unit, and among two at least.
TEST(joined_anchors, long_caches_keep_two_workgroups_a_unit_busy) {
  for (const auto& [batch, parts] : {std::pair<std::int64_t, std::int64_t>{32, 4}, {128, 2}}) {
    const native_kernel kernel = finalize_for(*joined_attention(batch, 32768, 0), find_target("sm_90"));
    ASSERT_EQ(kernel.launches.size(), 3u);
    EXPECT_EQ(kernel.launches[2].grid, parts);
    EXPECT_EQ(kernel.launches[2].block, 128);
  }
}

// On CDNA so does attention of a depth whose values fill a wave's loads.
TEST(joined_anchors, attention_appends_to_its_caches_on_cdna) {
  for (const char* target : {"gfx90a", "gfx942", "gfx950"})
    for (std::int64_t layers : {0, 2})
      EXPECT_EQ(launches(*joined_attention(2, 300, layers, element_type::f16, 128), target), 3u) << target;
}

// A stage stores the rows of both caches for targets, types and depths whose attention does not.
TEST(joined_anchors, other_attention_follows_the_updates) {
  for (const char* target : {"gfx942", "gfx1100"})
    EXPECT_EQ(launches(*joined_attention(2, 300, 0), target), 4u) << target;
  for (const char* target : {"gfx1100", "gfx1201"})
    EXPECT_EQ(launches(*joined_attention(2, 300, 0, element_type::f16, 128), target), 4u) << target;
  EXPECT_EQ(launches(*joined_attention(2, 300, 2, element_type::f32), "sm_90"), 4u);
}

}  // namespace
}  // namespace kiln::test
