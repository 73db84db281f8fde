// Matrix products with warpgroups (mlir_bridge/gpu/wgmma): the contents of the PTX for sm_90, which tiles are legal,
// and when other instructions are selected.
#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "ir/ops/all.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using dims_of = std::vector<std::int64_t>;

shape shape_of(element_type type, const dims_of& dims) { return {type, std::vector<dim>(dims.begin(), dims.end())}; }

std::unique_ptr<module> dot_module(const dims_of& a, const dims_of& b, dot op, element_type type, bool epilogue = false,
                                   std::optional<element_type> right = std::nullopt) {
  auto m = std::make_unique<module>("kernel");
  value x = m->add_parameter("a", shape_of(type, a)), y = m->add_parameter("b", shape_of(right.value_or(type), b));
  value result = m->add(op, {x, y});
  if (epilogue) {
    value residual = m->add_parameter("residual", result.type());
    result =
        m->add(elementwise{scalar_function::relu}, {m->add(elementwise{scalar_function::add}, {result, residual})});
  }
  m->set_outputs({result}, {"y"});
  return m;
}

struct finalized {
  native_kernel kernel;
  std::string ptx;
};

finalized finalize_for(const module& fusion, const std::string& target,
                       const kernel_configuration& configuration = {}) {
  static const compiler_context context;
  finalized result{
      finalize(portable_kernel::parse(context, write_kernel(fusion, "kernel")), find_target(target), configuration),
      {}};
  result.ptx.assign(reinterpret_cast<const char*>(result.kernel.object.data()), result.kernel.object.size() - 1);
  return result;
}

TEST(wgmma, large_products_use_tensor_copies_and_warpgroups) {
  auto [kernel, ptx] = finalize_for(
      *dot_module({4096, 4096}, {4096, 4096}, {false, true, element_type::f16}, element_type::f16), "sm_90");
  ASSERT_EQ(kernel.launches.size(), 1u);
  const launch& l = kernel.launches[0];
  EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n"));
  EXPECT_THAT(ptx, HasSubstr("cp.async.bulk.tensor.2d.shared::cluster.global"));
  EXPECT_THAT(ptx, HasSubstr("mbarrier.try_wait.parity"));
  EXPECT_THAT(ptx, HasSubstr(".param .align 64 .b8"));
  EXPECT_THAT(ptx, HasSubstr(".minnctapersm 1"));
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
  EXPECT_GT(l.statistics.matrix_instructions, 0);
  EXPECT_LE(l.lds_bytes, find_target("sm_90").gpu.lds_bytes);
  ASSERT_EQ(l.tensor_maps.size(), 2u);
  EXPECT_EQ(l.tensor_maps[0].dims, (dims_of{4096, 4096}));
  EXPECT_EQ(l.tensor_maps[0].strides, (dims_of{8192}));
  EXPECT_EQ(l.tensor_maps[0].box[0], 64);
  EXPECT_EQ(l.tensor_maps[0].swizzle_bytes, 128);
  EXPECT_EQ(l.arguments.size(), 3u);
}

TEST(wgmma, rows_of_k_are_read_transposed_by_the_instruction) {
  auto ptx = finalize_for(*dot_module({512, 1024}, {512, 768}, {true, false, element_type::bf16}, element_type::bf16),
                          "sm_90", {{"wgmma", 1}, {"tile_m", 128}, {"tile_n", 128}})
                 .ptx;
  EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"));
  EXPECT_THAT(ptx, HasSubstr("1, 1, 1, 1;"));
}

TEST(wgmma, batches_are_a_third_dimension) {
  auto kernel =
      finalize_for(*dot_module({12, 384, 64}, {12, 384, 64}, {false, true, element_type::f16}, element_type::f16),
                   "sm_90", {{"wgmma", 1}})
          .kernel;
  ASSERT_EQ(kernel.launches[0].tensor_maps.size(), 2u);
  EXPECT_EQ(kernel.launches[0].tensor_maps[0].dims, (dims_of{64, 384, 12}));
}

TEST(wgmma, int8_weights_are_rearranged_once) {
  auto [kernel, ptx] =
      finalize_for(*dot_module({256, 500}, {500, 512}, {false, false, element_type::i32}, element_type::i8), "sm_90",
                   {{"wgmma", 1}});
  // A's rows are not a multiple of 16 bytes either; both operands are parameters.
  ASSERT_EQ(kernel.launches.size(), 3u);
  EXPECT_TRUE(kernel.launches[0].prepare);
  EXPECT_TRUE(kernel.launches[1].prepare);
  EXPECT_EQ(kernel.launches[2].tensor_maps[1].strides, (dims_of{512}));
  EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n"));
  EXPECT_THAT(ptx, HasSubstr("s32.s8.s8"));
}

// The matrix unit keeps few bits of sums of 8-bit floats, so each block of 128 begins with sums of its own.
TEST(wgmma, floats_of_8_bits_have_sums_of_blocks) {
  using enum element_type;
  const auto product = [](element_type type, element_type result) {
    module m("kernel");
    value x = m.add_parameter("a", {type, {512, 1024}}), y = m.add_parameter("b", {type, {1024, 768}});
    m.set_outputs({m.add(convert{result}, {m.add(dot{.type = f32}, {x, y})})}, {"y"});
    return finalize_for(m, "sm_90");
  };
  for (auto [type, name] : {std::pair{f8e4m3, "f32.e4m3.e4m3"}, {f8e5m2, "f32.e5m2.e5m2"}}) {
    auto [kernel, ptx] = product(type, f16);
    ASSERT_EQ(kernel.launches.size(), 2u);
    EXPECT_TRUE(kernel.launches[0].prepare);
    EXPECT_THAT(ptx, HasSubstr(name));
    EXPECT_THAT(ptx, HasSubstr("k32."));
    EXPECT_THAT(ptx, HasSubstr("add.f32"));
    EXPECT_THAT(ptx, Not(HasSubstr(".local")));
  }
  // Results of f32, and other units, have f16 factors, in which these are exact.
  EXPECT_THAT(product(f8e4m3, f32).ptx, Not(HasSubstr("e4m3.e4m3")));
  for (const char* target : {"sm_80", "sm_89", "sm_90"})
    EXPECT_THAT(finalize_for(*dot_module({512, 1024}, {1024, 768}, {false, false, f32}, f8e4m3), target).ptx,
                HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
}

// Products of unsigned by signed bytes need PTX 8.4. All other kernels run with older drivers.
TEST(wgmma, mixed_bytes_raise_the_version_of_ptx) {
  using enum element_type;
  for (auto [a, version] : {std::pair{u8, ".version 8.4\n"}, {i8, ".version 8.0\n"}}) {
    auto [kernel, ptx] =
        finalize_for(*dot_module({256, 512}, {512, 512}, {false, false, i32}, a, false, i8), "sm_90", {{"wgmma", 1}});
    EXPECT_THAT(ptx, HasSubstr(a == u8 ? "s32.u8.s8" : "s32.s8.s8"));
    EXPECT_THAT(ptx, HasSubstr(version));
  }
}

// 96 columns are for products that fill the device once, with weights whose depth is innermost.
TEST(wgmma, tiles_of_96_columns_fill_the_device_once) {
  const auto grid = [](std::int64_t rows, std::int64_t columns, bool depth_first) {
    const dims_of weights = depth_first ? dims_of{columns, 2048} : dims_of{2048, columns};
    return finalize_for(*dot_module({rows, 2048}, weights, {false, depth_first, element_type::f16}, element_type::f16),
                        "sm_90")
        .kernel.launches.back()
        .grid;
  };
  EXPECT_EQ(grid(512, 3072, true), 4 * 32);
  EXPECT_EQ(grid(512, 3072, false), 4 * 24);
  EXPECT_EQ(grid(512, 2048, true), 4 * 32) << "64 columns";
}

TEST(wgmma, clusters_share_copies) {
  auto [kernel, ptx] =
      finalize_for(*dot_module({1024, 1024}, {1024, 1024}, {false, true, element_type::f16}, element_type::f16, true),
                   "sm_90", {{"wgmma", 1}, {"tile_m", 128}, {"tile_n", 128}, {"cluster_m", 2}, {"cluster_n", 2}});
  EXPECT_THAT(ptx, HasSubstr(".multicast::cluster"));
  EXPECT_THAT(ptx, HasSubstr(".reqnctapercluster 4"));
  EXPECT_EQ(kernel.launches[0].grid % 4, 0);
  EXPECT_EQ(kernel.launches[0].tensor_maps[0].box, (dims_of{64, 64}));
}

TEST(wgmma, a_cluster_may_share_k) {
  auto fusion = dot_module({128, 3072}, {3072, 768}, {false, false, element_type::f16}, element_type::f16, true);
  auto [kernel, ptx] = finalize_for(*fusion, "sm_90", {{"wgmma", 1}, {"tile_m", 64}, {"tile_n", 64}, {"splits", 4}});
  EXPECT_THAT(ptx, HasSubstr("ld.shared::cluster.b32"));
  EXPECT_THAT(ptx, HasSubstr(".reqnctapercluster 4"));
  EXPECT_EQ(kernel.launches[0].grid, 2 * 12 * 4);
  // There are more tiles than resident clusters, so k is not split.
  auto large = dot_module({4096, 512}, {512, 4096}, {false, false, element_type::f16}, element_type::f16);
  EXPECT_THAT(finalize_for(*large, "sm_90", {{"wgmma", 1}, {"tile_m", 64}, {"tile_n", 64}, {"splits", 2}}).ptx,
              Not(HasSubstr("wgmma")));
}

TEST(wgmma, few_rows_take_no_memory_for_rows_that_there_are_not) {
  const auto made = [](std::int64_t rows) {
    return finalize_for(*dot_module({rows, 4096}, {4096, 4096}, {false, false, element_type::f16}, element_type::f16),
                        "sm_90", {{"wgmma", 1}, {"tile_m", 64}, {"tile_n", 64}})
        .kernel.launches.at(0);
  };
  const launch few = made(17), all = made(64);
  EXPECT_EQ(few.tensor_maps.at(0).box, (dims_of{64, 24}));
  EXPECT_EQ(few.tensor_maps.at(1).box, (dims_of{64, 64}));
  EXPECT_EQ(all.tensor_maps.at(0).box, (dims_of{64, 64}));
  // 9 stages of 24 + 64 rows, beside which a second workgroup finds room, and 13 of 64 + 64.
  EXPECT_GE(few.lds_bytes, 9 * 88 * 128);
  EXPECT_LE(2 * few.lds_bytes, 226 * 1024);
  EXPECT_GE(all.lds_bytes, 13 * 128 * 128);
}

// Columns of large weights are the rows of the instructions, and the few rows their columns. The workgroups of a
// cluster divide k and send their sums to each other.
TEST(wgmma, few_rows_of_large_weights_are_columns_of_instructions) {
  const auto made = [](std::int64_t rows, std::int64_t columns) {
    return finalize_for(
        *dot_module({rows, 8192}, {8192, columns}, {false, false, element_type::f16}, element_type::f16, true),
        "sm_90");
  };
  const auto [kernel, ptx] = made(30, 2048);
  EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n32k16"));
  EXPECT_THAT(ptx, HasSubstr(", 1, 1, 1, 0;")) << "columns of the weights lie together";
  EXPECT_THAT(ptx, HasSubstr(".reqnctapercluster 4"));
  EXPECT_THAT(ptx, HasSubstr("st.shared::cluster.f32"));
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
  const launch& l = kernel.launches.at(0);
  EXPECT_EQ(l.grid, 32 * 4);
  EXPECT_EQ(l.tensor_maps.at(0).box, (dims_of{64, 32}));
  EXPECT_EQ(l.tensor_maps.at(1).box, (dims_of{64, 64}));
  ASSERT_EQ(l.early_arguments.size(), 1u);
  EXPECT_EQ(l.arguments.at(l.early_arguments[0]), (launch_argument{buffer_kind::input, 1}));
  EXPECT_LE(2 * l.lds_bytes, 226 * 1024) << "the next kernel's workgroup finds room";
  EXPECT_THAT(made(5, 2048).ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n8k16"));
  EXPECT_THAT(made(30, 512).ptx, Not(HasSubstr("st.shared::cluster"))) << "the exchange would take longer";
}

// 577 rows are four tiles of 152 whose rows are the instruction's columns: with tiles of 64 times a power of two, every
// fifth product would be of rows that do not exist, or units would have a second round.
TEST(wgmma, rows_that_are_no_multiple_of_64_are_divided_evenly) {
  const auto made = [](std::int64_t rows, std::int64_t depth, std::int64_t columns) {
    return finalize_for(
        *dot_module({rows, depth}, {depth, columns}, {false, false, element_type::f16}, element_type::f16), "sm_90");
  };
  const auto [kernel, ptx] = made(577, 4096, 4096);
  EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n152k16"));
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
  const launch& l = kernel.launches.at(0);
  EXPECT_EQ(l.grid, 4 * 32);
  EXPECT_EQ(l.tensor_maps.at(0).box, (dims_of{64, 152}));
  // Two tiles of rows copy the columns together.
  for (std::int64_t rows : {197, 256, 300, 400})
    EXPECT_THAT(made(rows, 2048, 8192).ptx, HasSubstr(".reqnctapercluster 2")) << rows;
  // Rows that fill tiles are multiplied as before, and so are columns that leave most units without work.
  EXPECT_THAT(made(1024, 1024, 1024).ptx, HasSubstr("m64n64k16"));
  EXPECT_THAT(made(300, 4096, 4096).ptx, Not(HasSubstr("m64n152k16")));
}

TEST(wgmma, turned_tiles_have_64_columns_of_each_product_for_both_consumers) {
  const target_row target = find_target("sm_90");
  gpu::wgmma_size size{.m = 577, .n = 4096, .k = 4096, .b_k_inner = false};
  gpu::wgmma_tile tile{.m = 152, .n = 128, .stages = 3, .turned = true};
  EXPECT_EQ(tile.sums(), 152 / 2);
  EXPECT_TRUE(legal(tile, size, target));
  tile.m = 150;
  EXPECT_FALSE(legal(tile, size, target)) << "a multiple of 8";
  tile.m = 152, tile.n = 256;
  EXPECT_FALSE(legal(tile, size, target));
  size.products = 2, size.n = 8192;
  EXPECT_TRUE(legal(tile, size, target));
  EXPECT_EQ(tile.sums(), 152);
  size.a_k_inner = false;
  EXPECT_FALSE(legal(tile, size, target));
}

// Also where a normalization, and a second product, are computed with it: the workgroups send sums of squares, too.
TEST(wgmma, transposed_tiles_are_legal_for_few_rows_only) {
  const target_row target = find_target("sm_90");
  gpu::wgmma_size size{.m = 32, .n = 2048, .k = 8192, .b_k_inner = false};
  gpu::wgmma_tile tile{
      .m = 64, .n = 64, .few_rows = 32, .pairs = true, .transposed = true, .stages = 4, .consumers = 1, .splits = 4};
  EXPECT_TRUE(legal(tile, size, target));
  size.products = 2, size.scaled = true;
  EXPECT_FALSE(legal(tile, size, target)) << "64 columns of each product";
  tile.n = 128;
  EXPECT_TRUE(legal(tile, size, target));
  tile.splits = 8;
  EXPECT_TRUE(legal(tile, size, target));
  size.open = true;
  EXPECT_FALSE(legal(tile, size, target));
  size.open = false, size.m = 65;
  EXPECT_FALSE(legal(tile, size, target));
}

// Weights of few rows do not wait for preceding kernels, on either kind of matrix instruction.
TEST(wgmma, few_rows_read_weights_before_they_wait) {
  const auto made = [](std::int64_t rows, kernel_configuration configuration) {
    return finalize_for(*dot_module({rows, 2048}, {2048, 4096}, {false, false, element_type::f16}, element_type::f16),
                        "sm_90", configuration)
        .kernel.launches.back();
  };
  const auto early = [](const launch& l) {
    std::vector<launch_argument> found;
    for (std::uint32_t i : l.early_arguments) found.push_back(l.arguments.at(i));
    return found;
  };
  const std::vector<launch_argument> weights{{buffer_kind::input, 1}}, packed{{buffer_kind::scratch, 0}};
  EXPECT_EQ(early(made(8, {{"wgmma", 1}, {"tile_m", 64}, {"tile_n", 64}})), weights);
  EXPECT_EQ(early(made(1, {{"wgmma", 0}})), packed);
  EXPECT_EQ(early(made(8, {{"wgmma", 0}})), packed);
  EXPECT_TRUE(early(made(64, {{"wgmma", 1}, {"tile_m", 64}, {"tile_n", 64}})).empty());
  EXPECT_TRUE(early(made(512, {})).empty());
}

TEST(wgmma, the_last_rows_are_copied_whole) {
  const auto made = [](std::int64_t rows) {
    return finalize_for(*dot_module({rows, 1024}, {1024, 1024}, {false, false, element_type::f16}, element_type::f16),
                        "sm_90", {{"wgmma", 1}, {"tile_m", 128}, {"tile_n", 128}});
  };
  // The last tile of 300 rows begins at 172, that of 100 has 104 rows of memory.
  EXPECT_THAT(made(300).ptx, HasSubstr(", 172;"));
  EXPECT_EQ(made(100).kernel.launches.at(0).tensor_maps.at(0).box, (dims_of{64, 104}));
}

TEST(wgmma, every_candidate_is_finalized) {
  auto fusion = dot_module({1024, 1024}, {1024, 1024}, {false, false, element_type::f16}, element_type::f16);
  gpu::wgmma_size size{.m = 1024, .n = 1024, .k = 1024, .b_k_inner = false, .epilogue_bytes = 2304};
  auto all = gpu::wgmma_configurations(size, find_target("sm_90"));
  ASSERT_GT(all.size(), 10u);
  for (std::size_t i = 0; i < all.size(); i += 5)
    EXPECT_THAT(finalize_for(*fusion, "sm_90", all[i].configuration).ptx, HasSubstr("wgmma.mma_async"));
}

TEST(wgmma, convolutions_of_single_pixels_are_products) {
  auto m = std::make_unique<module>("kernel");
  value x = m->add_parameter("x", shape_of(element_type::f16, {1, 28, 28, 512})),
        w = m->add_parameter("w", shape_of(element_type::f16, {1, 1, 512, 128}));
  convolution op{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, tensor_layout::channels_last};
  m->set_outputs({m->add(op, {x, w})}, {"y"});
  auto [kernel, ptx] = finalize_for(*m, "sm_90");
  EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async"));
  EXPECT_EQ(kernel.launches[0].tensor_maps[0].dims, (dims_of{512, 784}));
  op.strides = {2, 2};
  auto strided = std::make_unique<module>("kernel");
  x = strided->add_parameter("x", shape_of(element_type::f16, {1, 56, 56, 512})),
  w = strided->add_parameter("w", shape_of(element_type::f16, {1, 1, 512, 128}));
  strided->set_outputs({strided->add(op, {x, w})}, {"y"});
  EXPECT_THAT(finalize_for(*strided, "sm_90").ptx, Not(HasSubstr("wgmma")));
}

TEST(wgmma, budgets_are_checked) {
  const target_row target = find_target("sm_90");
  const gpu::wgmma_size size{.m = 4096, .n = 4096, .k = 4096};
  EXPECT_TRUE(legal({.m = 128, .n = 256, .stages = 4}, size, target));
  EXPECT_FALSE(legal({.m = 128, .n = 256, .stages = 5}, size, target)) << "shared memory";
  EXPECT_FALSE(legal({.m = 256, .n = 256, .stages = 2}, size, target)) << "registers";
  EXPECT_FALSE(legal({.m = 96, .n = 256, .stages = 2}, size, target));
  EXPECT_FALSE(legal({.m = 128, .n = 128, .stages = 2, .cluster_m = 4, .cluster_n = 4}, size, target));
  gpu::wgmma_size bytes = size;
  bytes.element_bytes = 1;
  bytes.b_k_inner = false;
  EXPECT_FALSE(legal({.m = 128, .n = 128, .stages = 2}, bytes, target)) << "8-bit factors have k inner";
}

// The other instructions would pad 17 rows to 32.
TEST(wgmma, rows_that_others_pad) {
  const auto made = [](std::int64_t rows) {
    return finalize_for(*dot_module({rows, 768}, {768, 768}, {false, false, element_type::f16}, element_type::f16),
                        "sm_90")
        .ptx;
  };
  EXPECT_THAT(made(17), HasSubstr("wgmma"));
  for (std::int64_t rows : {16, 24, 32}) EXPECT_THAT(made(rows), Not(HasSubstr("wgmma"))) << rows;
}

TEST(wgmma, other_instructions_where_it_does_not_apply) {
  auto large = dot_module({1024, 1024}, {1024, 1024}, {false, false, element_type::f16}, element_type::f16);
  EXPECT_THAT(finalize_for(*large, "sm_80").ptx, Not(HasSubstr("wgmma")));
  EXPECT_THAT(finalize_for(*large, "sm_90", {{"wgmma", 0}}).ptx, Not(HasSubstr("wgmma")));
  auto unaligned = dot_module({1024, 1023}, {1023, 1024}, {false, false, element_type::f16}, element_type::f16);
  EXPECT_THAT(finalize_for(*unaligned, "sm_90").ptx, Not(HasSubstr("wgmma")));
  auto narrow = dot_module({1, 4096}, {4096, 4096}, {false, false, element_type::f16}, element_type::f16);
  EXPECT_THAT(finalize_for(*narrow, "sm_90").ptx, Not(HasSubstr("wgmma")));
}

// If a driver compiles PTX to be linked, ptxas does not overlap warpgroup instructions next to a call.
TEST(wgmma, no_division_becomes_a_call) {
  module m("kernel");
  value x = m.add_parameter("a", shape_of(element_type::f16, {13 * 128, 1024})),
        y = m.add_parameter("b", shape_of(element_type::f16, {1024, 512}));
  value sum = m.add(dot{false, false, element_type::f16}, {x, y});
  value divisor = m.add_parameter("divisor", sum.type());
  m.set_outputs({m.add(elementwise{scalar_function::sqrt}, {m.add(elementwise{scalar_function::div}, {sum, divisor})})},
                {"y"});
  for (std::int64_t tile : {64, 128}) {
    auto ptx = finalize_for(m, "sm_90", {{"wgmma", 1}, {"tile_m", tile}}).ptx;
    EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async"));
    for (const char* call : {"div.rn", "rcp.rn", "sqrt.rn", "div.u", "div.s", "rem.u", "rem.s"})
      EXPECT_THAT(ptx, Not(HasSubstr(call)));
  }
}

}  // namespace
}  // namespace kiln::test
