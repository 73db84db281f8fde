// Attention (mlir_bridge/kinds/attention) with warpgroups, and with few rows: the contents of the PTX for sm_90, and
// when each generator is selected. Numbers are compared in the emulator and on GPUs.
#include <gmock/gmock.h>

#include <string>

#include "ir/ops/all.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kinds/attention/gpu/row_division.hpp"

namespace kiln::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using dims_of = std::vector<std::int64_t>;

shape shape_of(element_type type, const dims_of& dims) { return {type, std::vector<dim>(dims.begin(), dims.end())}; }

struct attention_case {
  dims_of query, key;
  attention op{.scale = 0.125};
  element_type type = element_type::f16;
  bool epilogue = false, mask = false;
  // A mask that compares the keys' numbers with a limit of each query.
  bool limits = false;
};

struct finalized {
  native_kernel kernel;
  std::string ptx;
};

finalized finalize_for(const attention_case& c, const std::string& target = "sm_90",
                       const kernel_configuration& configuration = {}) {
  static const compiler_context context;
  module m("kernel");
  std::vector<value> inputs{m.add_parameter("q", shape_of(c.type, c.query)),
                            m.add_parameter("k", shape_of(c.type, c.key)),
                            m.add_parameter("v", shape_of(c.type, c.key))};
  if (c.mask) inputs.push_back(m.add_parameter("mask", shape_of(c.type, {c.query[2], c.key[2]})));
  if (c.limits) {
    const std::vector<dim> wide{1, 1, c.query[2], c.key[2]};
    value columns = m.add(broadcast{wide}, {m.add(iota{element_type::i64, {dim(c.key[2])}, 0}, {})});
    value ends = m.add_parameter("limits", shape_of(element_type::i64, {1, 1, c.query[2], 1}));
    inputs.push_back(m.add(elementwise{scalar_function::less_equal}, {columns, m.add(broadcast{wide}, {ends})}));
  }
  value result = m.add(c.op, inputs);
  if (c.epilogue)
    result = m.add(elementwise{scalar_function::add}, {result, m.add_parameter("residual", result.type())});
  m.set_outputs({result}, {"y"});
  finalized done{
      finalize(portable_kernel::parse(context, write_kernel(m, "kernel")), find_target(target), configuration), {}};
  done.ptx.assign(reinterpret_cast<const char*>(done.kernel.object.data()), done.kernel.object.size() - 1);
  return done;
}

// Returns the instructions that ptxas compiles to a call. If PTX is compiled to be linked, warpgroup instructions do
// not overlap next to a call.
constexpr const char* instructions_that_call[] = {"div.rn", "rcp.rn", "sqrt.rn", "div.u", "div.s", "rem.u", "rem.s"};
constexpr const char* warpgroups = "wgmma.mma_async.sync.aligned.m64n";

TEST(wgmma_attention, large_heads_use_tensor_copies_and_warpgroups) {
  auto [kernel, ptx] = finalize_for({{1, 16, 4096, 128}, {1, 16, 4096, 128}, {.scale = 0.09, .causal = true}});
  ASSERT_EQ(kernel.launches.size(), 1u);
  const launch& l = kernel.launches[0];
  EXPECT_THAT(ptx, HasSubstr(warpgroups));
  EXPECT_THAT(ptx, HasSubstr("cp.async.bulk.tensor.4d.shared::cluster.global"));
  EXPECT_THAT(ptx, HasSubstr("setmaxnreg.inc.sync.aligned.u32 240;"));
  EXPECT_THAT(ptx, HasSubstr(".minnctapersm 1"));
  EXPECT_THAT(ptx, HasSubstr("vote.sync.any.pred")) << "sums are multiplied where a maximum grew by much only";
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
  EXPECT_LE(l.lds_bytes, find_target("sm_90").gpu.lds_bytes);
  EXPECT_EQ(l.grid * l.grid_y * l.grid_z, 16 * 32);
  EXPECT_EQ(l.block, 384);
  ASSERT_EQ(l.tensor_maps.size(), 3u);
  EXPECT_EQ(l.tensor_maps[1].dims, (dims_of{128, 4096, 16, 1}));
  EXPECT_EQ(l.tensor_maps[1].strides, (dims_of{256, 4096 * 256, 16 * 4096 * 256}));
  EXPECT_EQ(l.tensor_maps[1].box, (dims_of{64, 96, 1, 1}));
  for (const char* call : instructions_that_call) EXPECT_THAT(ptx, Not(HasSubstr(call)));
}

// A general mask is read element by element; limits of rows are numbers like those of a causal mask.
TEST(wgmma_attention, limits_of_queries_select_warpgroups) {
  attention_case c{{1, 16, 1000, 64}, {1, 4, 1500, 64}};
  c.limits = true;
  const std::string with_limits = finalize_for(c).ptx;
  EXPECT_THAT(with_limits, HasSubstr(warpgroups));
  EXPECT_THAT(with_limits, Not(HasSubstr(".local")));
  for (const char* call : instructions_that_call) EXPECT_THAT(with_limits, Not(HasSubstr(call)));
  // They lie in shared memory, so that three consumers have registers enough.
  const attention_case many{.query = {1, 16, 4096, 64}, .key = {1, 4, 4096, 64}, .limits = true};
  const native_kernel kernel = finalize_for(many).kernel;
  EXPECT_EQ(kernel.launches[0].block, 512);
  EXPECT_LE(kernel.launches[0].lds_bytes, find_target("sm_90").gpu.lds_bytes);
  c.limits = false, c.mask = true;
  EXPECT_THAT(finalize_for(c).ptx, Not(HasSubstr(warpgroups)));
}

TEST(wgmma_attention, narrow_heads_have_longer_blocks_of_keys) {
  auto [kernel, ptx] = finalize_for({{1, 16, 1024, 64}, {1, 16, 1024, 64}, {.scale = 0.125}, element_type::bf16, true});
  EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"));
  EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"));
  EXPECT_EQ(kernel.launches[0].block, 384);
}

// 132 compute units: 16 heads of 4096 queries are 4 rounds of workgroups with two consumers, 3 with three. 16 heads of
// 1024 are one round of either, so the shorter one is chosen.
TEST(wgmma_attention, three_consumers_where_they_save_rounds) {
  const auto threads = [](std::int64_t heads, std::int64_t length, bool causal = false) {
    return finalize_for({{1, heads, length, 64}, {1, heads, length, 64}, {.scale = 0.125, .causal = causal}})
        .kernel.launches[0]
        .block;
  };
  EXPECT_EQ(threads(16, 4096), 512);
  EXPECT_EQ(threads(16, 1024), 384);
  EXPECT_EQ(threads(12, 4096, true), 512);
  EXPECT_EQ(threads(12, 1024, true), 384);
  const attention_case one{{1, 16, 4096, 64}, {1, 16, 4096, 64}};
  EXPECT_THAT(finalize_for(one).ptx, HasSubstr("m64n112k16"));
  EXPECT_EQ(finalize_for(one, "sm_90", {{"consumers", 2}}).kernel.launches[0].block, 384);
}

// 64 heads of 1024 queries: six workgroups of each head either way, but with three consumers in all of them the last
// one of each head would have rows for one, and some units would have three long workgroups.
TEST(wgmma_attention, short_tiles_divide_rows_evenly) {
  const attention_case even{{1, 64, 1024, 64}, {1, 64, 1024, 64}};
  auto [kernel, ptx] = finalize_for(even);
  const launch& l = kernel.launches[0];
  EXPECT_EQ(l.grid, 64 * 6);
  EXPECT_EQ(l.grid_y, 1);
  EXPECT_EQ(l.block, 512);
  EXPECT_THAT(ptx, HasSubstr("setmaxnreg.inc.sync.aligned.u32 160;"));
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
  for (const char* call : instructions_that_call) EXPECT_THAT(ptx, Not(HasSubstr(call)));
  // Rows that are no multiple of 64, grouped heads, several batches.
  const native_kernel ragged = finalize_for({{2, 32, 1000, 64}, {2, 8, 1500, 64}}).kernel;
  EXPECT_EQ(ragged.launches[0].grid, 2 * 32 * 6);
  // All tiles are alike where the caller chooses, and where rows see a prefix of the keys.
  EXPECT_EQ(finalize_for(even, "sm_90", {{"consumers", 3}}).kernel.launches[0].grid_y, 64);
  EXPECT_EQ(
      finalize_for({{1, 64, 1024, 64}, {1, 64, 1024, 64}, {.scale = 0.125, .causal = true}}).kernel.launches[0].grid_y,
      6);
}

TEST(row_division, ends_when_the_last_workgroup_does) {
  constexpr std::int64_t units = 132;
  EXPECT_EQ(gpu::time_of({}, 16, 64, units), 4 * 100);
  EXPECT_EQ(gpu::time_of({.consumers = 3}, 16, 64, units), 3 * 128);
  // 256 long workgroups: the second round has 124, and beside them 8 units begin with two of the 128 short ones each.
  EXPECT_EQ(gpu::time_of({.consumers = 3, .short_tiles = 2, .short_consumers = 2}, 16, 64, units), 2 * 128 + 100);
  // Whole rounds of long ones, and a round of short ones.
  EXPECT_EQ(gpu::time_of({.consumers = 3, .short_tiles = 1, .short_consumers = 1}, 4, 132, units), 128 + 80);
}

TEST(row_division, is_the_one_that_ends_first) {
  constexpr std::int64_t units = 132;
  EXPECT_EQ(gpu::divide_rows(16, 64, units),
            (gpu::row_division{.consumers = 3, .short_tiles = 2, .short_consumers = 2}));
  EXPECT_EQ(gpu::divide_rows(16, 16, units), gpu::row_division{}) << "one round of small workgroups";
  EXPECT_EQ(gpu::divide_rows(6, 96, units), gpu::row_division{.consumers = 3}) << "two rounds, almost full";
}

// Depth 256 needs more registers than a producer warpgroup leaves, and code that is compiled to be linked cannot move
// them.
TEST(wgmma_attention, a_consumer_copies_where_heads_are_deep) {
  const attention_case deep{{1, 16, 2048, 256}, {1, 16, 2048, 256}, {.scale = 0.0625}};
  auto [kernel, ptx] = finalize_for(deep);
  EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16"));
  EXPECT_THAT(ptx, Not(HasSubstr("setmaxnreg")));
  EXPECT_EQ(kernel.launches[0].block, 256);
  for (const char* call : instructions_that_call) EXPECT_THAT(ptx, Not(HasSubstr(call)));
  EXPECT_EQ(finalize_for(deep, "sm_90", {{"producer", 1}}).kernel.launches[0].block, 384);
}

TEST(wgmma_attention, few_rows_share_keys_between_workgroups) {
  const attention_case long_past{{1, 16, 256, 64}, {1, 16, 8192, 64}};
  auto [kernel, ptx] = finalize_for(long_past);
  EXPECT_THAT(ptx, HasSubstr(warpgroups));
  const launch& l = kernel.launches.back();
  EXPECT_EQ(l.grid, 2 * 4);
  EXPECT_EQ(l.grid_y, 16);
  EXPECT_EQ(l.block, 256);
  EXPECT_EQ(finalize_for(long_past, "sm_90", {{"key_parts", 1}, {"wgmma", 1}}).kernel.launches[0].grid, 2);
  // Rows of a head of keys are those of four heads, whose tiles would meet in the middle of one.
  const attention_case grouped{{1, 16, 200, 64}, {1, 4, 8192, 64}};
  EXPECT_EQ(finalize_for(grouped, "sm_90", {{"wgmma", 1}, {"key_parts", 4}}).kernel.launches[0].grid, 2);
}

// One workgroup would read the results of all parts of a tile for longer than another launch takes.
TEST(wgmma_attention, parts_of_deep_heads_are_joined_by_a_launch_of_their_own) {
  const auto made = [](std::int64_t key_parts) {
    return finalize_for({{1, 8, 128, 256}, {1, 8, 4096, 256}}, "sm_90", {{"wgmma", 1}, {"key_parts", key_parts}})
        .kernel;
  };
  const native_kernel apart = made(13), together = made(2), one = made(1);
  ASSERT_EQ(apart.launches.size(), 2u);
  EXPECT_EQ(apart.launches[0].grid, 13);
  EXPECT_EQ(apart.launches[1].grid * apart.launches[1].block, 128 * 256 / 4);
  EXPECT_EQ(apart.launches[1].grid_y, 8);
  EXPECT_EQ(apart.scratch.size(), 2u) << "nobody counts";
  EXPECT_EQ(together.launches.size(), 1u);
  EXPECT_EQ(together.scratch.size(), 3u);
  EXPECT_EQ(one.scratch.size(), 0u);
}

TEST(wgmma_attention, heads_may_come_after_positions_and_share_keys) {
  attention op{.scale = 0.125, .causal = true};
  op.query_layout = op.key_layout = op.value_layout = op.output_layout = head_layout::sequence_first;
  auto [kernel, ptx] = finalize_for({{2, 1000, 16, 64}, {2, 1300, 4, 64}, op}, "sm_90", {{"wgmma", 1}});
  EXPECT_THAT(ptx, HasSubstr(warpgroups));
  const launch& l = kernel.launches[0];
  EXPECT_EQ(l.tensor_maps[0].dims, (dims_of{64, 1000, 16, 2}));
  EXPECT_EQ(l.tensor_maps[0].strides, (dims_of{16 * 128, 128, 1000 * 16 * 128}));
  EXPECT_EQ(l.tensor_maps[2].dims, (dims_of{64, 1300, 4, 2}));
}

TEST(wgmma_attention, waits_may_be_bounded) {
  auto ptx = finalize_for({{1, 16, 1024, 64}, {1, 16, 1024, 64}}, "sm_90",
                          {{"wgmma", 1}, {"bounded", 1}, {"consumers", 2}, {"keys", 64}, {"turns", 0}})
                 .ptx;
  EXPECT_THAT(ptx, HasSubstr("m64n64k16"));
  EXPECT_THAT(ptx, HasSubstr("trap;"));
}

TEST(wgmma_attention, other_instructions_do_the_rest) {
  const attention_case large{{1, 16, 1024, 128}, {1, 16, 1024, 128}};
  EXPECT_THAT(finalize_for(large).ptx, HasSubstr(warpgroups));
  EXPECT_THAT(finalize_for(large, "sm_80").ptx, Not(HasSubstr("wgmma")));
  EXPECT_THAT(finalize_for(large, "sm_90", {{"wgmma", 0}}).ptx, Not(HasSubstr("wgmma")));
  const attention_case small{{1, 12, 128, 64}, {1, 12, 128, 64}}, decode{{1, 32, 1, 128}, {1, 32, 4096, 128}},
      depth{{1, 16, 1024, 72}, {1, 16, 1024, 72}};
  attention_case masked = large, negative = large, wide = large;
  masked.mask = true;
  negative.op.scale = -1;
  wide.type = element_type::f32;
  for (const attention_case& c : {small, decode, depth, masked, negative, wide})
    EXPECT_THAT(finalize_for(c).ptx, Not(HasSubstr("wgmma")));
  EXPECT_THAT(finalize_for(small, "sm_90", {{"wgmma", 1}}).ptx, HasSubstr(warpgroups));
}

std::int64_t workgroups(const native_kernel& kernel) {
  return kernel.launches[0].grid * kernel.launches[0].grid_y * kernel.launches[0].grid_z;
}

// There are neither copies to shared memory nor barriers between blocks. 32 keys by 128 depths of keys and values, and
// the queries, are 36 loads of 16 bytes.
TEST(narrow_attention, few_rows_read_keys_straight_from_memory) {
  const attention_case decode{{1, 32, 1, 128}, {1, 8, 4096, 128}};
  auto [kernel, ptx] = finalize_for(decode);
  ASSERT_EQ(kernel.launches.size(), 1u);
  // The device has 132 compute units.
  EXPECT_EQ(workgroups(kernel), 128);
  ASSERT_EQ(kernel.scratch.size(), 3u);
  EXPECT_TRUE(kernel.scratch[2].zeroed);
  // A counter for each key head.
  EXPECT_EQ(kernel.scratch[2].bytes, 8 * 4);
  EXPECT_THAT(ptx, HasSubstr("atom."));
  EXPECT_THAT(ptx, Not(HasSubstr("cp.async")));
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
  EXPECT_EQ(finalize_for(decode, "sm_90", {{"key_parts", 1}}).kernel.scratch.size(), 0u);
  EXPECT_EQ(workgroups(finalize_for(decode, "sm_90", {{"key_parts", 5}}).kernel), 40);
  EXPECT_EQ(finalize_for(decode, "sm_90", {{"waves", 4}}).kernel.launches[0].block, 128);
}

TEST(narrow_attention, parts_fill_the_device_and_no_more) {
  auto parts = [](std::int64_t batch, std::int64_t key_heads, std::int64_t keys) {
    return workgroups(finalize_for({{batch, 32, 1, 128}, {batch, key_heads, keys, 128}}).kernel) / (batch * key_heads);
  };
  EXPECT_EQ(parts(1, 8, 64), 1);
  EXPECT_EQ(parts(2, 8, 4096), 8);
  EXPECT_EQ(parts(4, 32, 1024), 1);
  EXPECT_EQ(parts(64, 8, 128), 1);
}

TEST(narrow_attention, other_depths_and_many_rows_go_through_shared_memory) {
  const attention_case depth{{1, 32, 1, 72}, {1, 8, 4096, 72}}, rows{{1, 32, 100, 128}, {1, 8, 4096, 128}};
  for (const attention_case& c : {depth, rows}) {
    auto kernel = finalize_for(c).kernel;
    ASSERT_EQ(kernel.launches.size(), 1u);
    EXPECT_EQ(kernel.launches[0].block, 128);
    // Keys are split nevertheless.
    EXPECT_EQ(kernel.scratch.size(), 3u);
    EXPECT_EQ(finalize_for(c, "sm_90", {{"key_parts", 1}}).kernel.scratch.size(), 0u);
  }
  EXPECT_EQ(finalize_for({{1, 32, 1, 128}, {1, 8, 4096, 128}}, "sm_90", {{"narrow", 0}}).kernel.launches[0].block, 128);
}

std::size_t count_in(const std::string& text, std::string_view word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// A last block of fewer keys has no products of its own in f32, except behind many blocks and with a causal mask.
TEST(matrix_attention, a_last_block_shares_the_products_of_parts) {
  const auto products = [](std::int64_t keys, bool causal) {
    attention_case c{{1, 6, 1500, 64}, {1, 6, keys, 64}, {.scale = 0.125, .causal = causal}};
    c.type = element_type::f32;
    return count_in(finalize_for(c).ptx, "mma.sync");
  };
  EXPECT_EQ(products(1500, false), products(1536, false));
  EXPECT_GT(products(5000, false), products(1536, false));
  EXPECT_GT(products(1500, true), products(1536, false));
}

// Registers of RDNA do not hold the queries beside the sums of such heads.
TEST(matrix_attention, deep_heads_do_not_spill_on_amd_gpus) {
  const attention_case cases[] = {{{1, 8, 512, 256}, {1, 8, 2048, 256}},
                                  {{1, 2, 61, 256}, {1, 2, 2060, 256}},
                                  {{1, 16, 1024, 192}, {1, 16, 1000, 192}}};
  for (const char* target : {"gfx942", "gfx1100", "gfx1151", "gfx1201"})
    for (const attention_case& c : cases)
      for (const launch& l : finalize_for(c, target).kernel.launches) {
        EXPECT_EQ(l.statistics.spills, 0) << target << " " << l.symbol << " " << c.key[2];
        EXPECT_EQ(l.statistics.private_bytes, 0) << target << " " << l.symbol << " " << c.key[2];
      }
}

}  // namespace
}  // namespace kiln::test
