// Matrix products and convolutions for every GPU row (mlir_bridge/gpu/contraction): resource use of their kernels, and
// which tiles are legal. Their numbers are compared in the emulator (test/emulation) and on GPUs (bench/gpu/gemm.py).
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "../cpu_contraction/fusions.hpp"
#include "gpu_targets.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/gpu/contraction/narrow.hpp"
#include "mlir_bridge/gpu/contraction/tile_shape.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln::test {
namespace {

using enum element_type;

convolution convolved(std::size_t axes, std::int64_t stride, std::int64_t pad, std::int64_t groups = 1) {
  convolution op;
  op.strides.assign(axes, stride);
  op.dilations.assign(axes, 1);
  op.pads_begin = op.pads_end = std::vector<std::int64_t>(axes, pad);
  op.groups = groups;
  return op;
}

transposed_convolution transposed(std::int64_t stride, std::int64_t groups = 1) {
  transposed_convolution op;
  op.strides = {stride, stride};
  op.dilations = {1, 1};
  op.pads_begin = op.pads_end = {1, 1};
  op.output_padding = {0, 0};
  op.groups = groups;
  return op;
}

native_kernel finalized(const module& fusion, const std::string& target,
                        const kernel_configuration& configuration = {}) {
  static const compiler_context context;
  return finalize(portable_kernel::parse(context, write_kernel(fusion, "kernel")), find_target(target), configuration);
}

std::unique_ptr<module> square(std::int64_t n, element_type type, element_type result, epilogue kind = epilogue::none) {
  return dot_fusion({n, n}, {n, n}, {.transpose_b = true, .type = result}, type, type, kind);
}

// No spills, no private memory, shared memory and threads within the row.
TEST(contraction, dots_of_every_type_on_every_gpu) {
  for (auto [type, result] : {std::pair{f16, f16}, {bf16, bf16}, {f32, f32}, {i8, i32}, {f64, f64}, {i32, i32}}) {
    check_all_targets(*dot_fusion({50, 147}, {147, 72}, {.type = result}, type, type, epilogue::bias_relu_residual));
    check_all_targets(*dot_fusion({3, 65, 40}, {3, 33, 40}, {.transpose_b = true, .type = result}, type, type));
  }
  check_all_targets(*dot_fusion({40, 30}, {40, 20}, {.transpose_a = true, .type = i32}, u8, i8));
}

TEST(contraction, narrow_dots_on_every_gpu) {
  for (std::int64_t m : {1, 4, 16})
    for (element_type type : {f16, f32})
      check_all_targets(*dot_fusion({m, 1024}, {1024, 200}, {.type = type}, type, type, epilogue::sigmoid));
}

// The weights of one row are asked for before the wait for preceding kernels, with loads that ptxas leaves there.
TEST(contraction, products_of_one_row_keep_their_loads_in_place) {
  const native_kernel kernel =
      finalized(*dot_fusion({1, 2048}, {4096, 2048}, {.transpose_b = true, .type = f16}, f16, f16), "sm_90");
  ASSERT_EQ(kernel.launches.size(), 1u);
  const std::string_view ptx(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size());
  const auto load = ptx.find("ld.global"), wait = ptx.find("griddepcontrol.wait"),
             last = ptx.find("griddepcontrol.wait", wait + 1), product = ptx.find("mma.sync");
  EXPECT_EQ(ptx.find("ld.global.nc"), std::string_view::npos);
  EXPECT_NE(ptx.find(".minnctapersm 2"), std::string_view::npos);
  EXPECT_LT(load, wait);
  EXPECT_LT(wait, last);
  EXPECT_LT(last, product);
}

// The next kernel may be placed as soon as the first loads of one row's weights are on their way. Products that read
// weights in many turns, or by copies, admit it when they have read all.
TEST(contraction, successors_are_admitted_before_the_wait_where_all_loads_are_issued) {
  const auto admits_first = [](std::int64_t rows, std::int64_t depth) {
    const native_kernel kernel =
        finalized(*dot_fusion({rows, depth}, {4096, depth}, {.transpose_b = true, .type = f16}, f16, f16), "sm_90");
    const std::string_view ptx(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size());
    const auto begin = ptx.find("narrow("), admission = ptx.find("griddepcontrol.launch_dependents", begin);
    EXPECT_NE(admission, std::string_view::npos) << rows << " x " << depth;
    EXPECT_LT(ptx.find("ld.global", begin), admission) << rows << " x " << depth;
    return admission < ptx.find("griddepcontrol.wait", begin);
  };
  EXPECT_TRUE(admits_first(1, 2048));
  EXPECT_TRUE(admits_first(1, 8192));
  EXPECT_FALSE(admits_first(1, 1 << 16));
}

// Weights of few columns are copied by workgroups of 32 columns and eight waves, which leave others of the units free.
TEST(contraction, few_rows_of_few_columns_take_small_workgroups) {
  const auto made = [](std::int64_t m, std::int64_t n) {
    return finalized(*dot_fusion({m, 2048}, {n, 2048}, {.transpose_b = true, .type = f16}, f16, f16), "sm_90");
  };
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{8, 2048}, {16, 2048}, {8, 3072}}) {
    const launch product = made(m, n).launches.back();
    EXPECT_TRUE(product.symbol.ends_with("narrow")) << m << " " << n;
    EXPECT_EQ(product.grid, n / 32) << m << " " << n;
    EXPECT_EQ(product.block, 256) << m << " " << n;
  }
  const native_kernel more = made(16, 3072);
  EXPECT_TRUE(more.launches.back().symbol.ends_with("wgmma"));
}

// An instruction takes 16 rows, but a lane's second part is zero if there are no more than 8.
TEST(contraction, narrow_dots_load_only_rows_that_there_are) {
  const auto copies = [](std::int64_t m) {
    const native_kernel kernel =
        finalized(*dot_fusion({m, 4096}, {4096, 4096}, {.transpose_b = true, .type = f16}, f16, f16), "sm_90",
                  {{"narrow_columns", 4}, {"narrow_waves", 16}, {"narrow_stages", 4}});
    const std::string_view ptx(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size());
    std::size_t count = 0;
    for (std::size_t at = ptx.find("cp.async.cg"); at != std::string_view::npos; at = ptx.find("cp.async.cg", at + 1))
      ++count;
    return count;
  };
  // Three steps ahead and one in the loop: four columns and the rows.
  EXPECT_EQ(copies(8), 4u * 5);
  EXPECT_EQ(copies(9), 4u * 6);
}

// With one workgroup for each compute unit, packed weights are read by all threads that it may have.
TEST(contraction, packed_weights_of_few_columns_have_large_workgroups) {
  const auto threads = [](std::int64_t n, std::int64_t k) {
    module m("kernel");
    const std::vector<dim> apart{n, k / 128, 128}, shared{n, k / 128, 1};
    value scales = m.add(broadcast{apart}, {m.add_parameter("scale", {f16, shared})}),
          weights = m.add(convert{f16}, {m.add_parameter("w", {i4, apart})});
    value left = m.add_parameter("a", {f16, std::vector<dim>{1, k}}),
          whole = m.add(reshape{{n, k}}, {m.add(elementwise{scalar_function::mul}, {weights, scales})});
    m.set_outputs({m.add(dot{.transpose_b = true, .type = f16}, {left, whole})}, {"y"});
    return finalized(m, "sm_90").launches.back().block;
  };
  EXPECT_EQ(threads(2048, 8192), 512);
  EXPECT_EQ(threads(4096, 4096), 512) << "of two columns each";
  EXPECT_EQ(threads(8192, 4096), 256);
}

TEST(contraction, convolutions_on_every_gpu) {
  for (element_type type : {f16, f32, i8}) {
    check_all_targets(
        *convolution_fusion({1, 14, 14, 64}, {3, 3, 64, 96}, convolved(2, 1, 1), type, epilogue::bias_relu_residual));
    check_all_targets(*convolution_fusion({2, 9, 9, 3}, {3, 3, 3, 20}, convolved(2, 2, 1), type));
  }
  check_all_targets(*convolution_fusion({1, 30, 16}, {5, 8, 16}, convolved(1, 1, 2, 2), f16));
  check_all_targets(*convolution_fusion({1, 5, 5, 5, 16}, {2, 2, 2, 16, 8}, convolved(3, 1, 0), f16));
  check_all_targets(*convolution_fusion({1, 7, 7, 16}, {3, 3, 8, 16}, transposed(2), f16));
  check_all_targets(*convolution_fusion({1, 7, 7, 16}, {3, 3, 4, 16}, transposed(1, 2), f32));
}

TEST(contraction, channels_of_a_larger_image_on_every_gpu) {
  for (element_type type : {f16, f32, i8}) {
    const auto same = channels_fusion({1, 14, 14, 32}, 32, 64, {3, 3, 32, 96}, convolved(2, 1, 1), type);
    const auto depthwise = channels_fusion({1, 14, 14, 32}, 32, 0, {3, 3, 1, 32}, convolved(2, 1, 1, 32), type);
    check_all_targets(*same);
    check_all_targets(*depthwise);
    check_all_targets(*channels_fusion({2, 9, 9, 8}, 3, 2, {3, 3, 8, 20}, convolved(2, 2, 1), type));
    check_all_targets(*channels_fusion({2, 9, 9, 16}, 16, 0, {1, 1, 16, 24}, convolved(2, 1, 0), type));
    for (const char* target : {"gfx942", "gfx1100", "sm_90"})
      for (const auto* fusion : {same.get(), depthwise.get()}) {
        const native_kernel kernel = finalized(*fusion, target);
        EXPECT_EQ(std::ranges::count(kernel.launches, false, &launch::prepare), 1) << target;
      }
  }
  check_all_targets(*channels_fusion({1, 7, 7, 16}, 16, 16, {3, 3, 8, 16}, transposed(2), f16));
}

TEST(contraction, large_products_use_the_matrix_unit_without_spills) {
  for (const target_row& target : gpu_targets())
    for (auto [type, result] : {std::pair{f16, f16}, {bf16, bf16}, {f32, f32}, {i8, i32}}) {
      SCOPED_TRACE(target.name);
      native_kernel kernel =
          finalize_for(*square(1024, type, result, type == i8 ? epilogue::none : epilogue::bias_relu_residual), target);
      const launch& product = kernel.launches.back();
      EXPECT_EQ(product.statistics.spills + product.statistics.private_bytes, 0);
      if (!gpu::find_matrix_instructions(target.gpu.matrix, type, false).empty()) {
        EXPECT_GT(product.statistics.matrix_instructions, 0);
      }
    }
}

// MFMA and v_dot4_i32_i8 take signed bytes only, WMMA and mma.sync a factor of each kind.
TEST(contraction, unsigned_by_signed_bytes_use_the_matrix_unit) {
  for (const target_row& target : gpu_targets())
    for (std::int64_t rows : {1, 16, 512}) {
      SCOPED_TRACE(target.name + ", rows: " + std::to_string(rows));
      const native_kernel kernel =
          finalize_for(*dot_fusion({rows, 512}, {512, 512}, {.transpose_b = true, .type = i32}, u8, i8), target);
      const launch& product = kernel.launches.back();
      EXPECT_EQ(product.statistics.spills + product.statistics.private_bytes, 0);
      const auto units = gpu::find_matrix_instructions(target.gpu.matrix, i8, false);
      if (!units.empty() && (rows > 16 || units.back()->m == 16)) {
        EXPECT_GT(product.statistics.matrix_instructions, 0);
      }
    }
  EXPECT_TRUE(gpu::is_shifted(find_target("gfx942").gpu, gpu::types_of(u8, i8)));
  EXPECT_TRUE(gpu::is_shifted(find_target("gfx1030").gpu, gpu::types_of(u8, i8)));
  for (const char* target : {"gfx1010", "gfx1100", "gfx1201", "sm_75", "sm_80"})
    EXPECT_FALSE(gpu::is_shifted(find_target(target).gpu, gpu::types_of(u8, i8))) << target;
  const native_kernel kernel =
      finalized(*dot_fusion({64, 512}, {512, 64}, {.transpose_b = false, .type = i32}, u8, i8), "sm_80");
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size() - 1),
              testing::HasSubstr("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"));
}

TEST(contraction, constant_weights_are_packed_once) {
  native_kernel kernel = finalized(*dot_fusion({64, 200}, {200, 64}, {.type = f16}, f16, f16), "gfx942");
  ASSERT_EQ(kernel.launches.size(), 2u);
  EXPECT_TRUE(kernel.launches[0].prepare);
  EXPECT_FALSE(kernel.launches[1].prepare);
  ASSERT_EQ(kernel.scratch.size(), 1u);
  EXPECT_TRUE(kernel.scratch[0].prepared);
  EXPECT_GE(kernel.scratch[0].bytes, 200 * 64 * 2);
  // Weights whose rows are whole chunks are not copied.
  EXPECT_EQ(finalized(*square(256, f16, f16), "gfx942").launches.size(), 1u);
}

TEST(contraction, a_split_depth_is_one_launch_with_counters) {
  native_kernel kernel = finalized(
      *square(64, f16, f16), "gfx1100",
      {{"tile_m", 32}, {"tile_n", 32}, {"part_m", 16}, {"part_n", 16}, {"chunks", 4}, {"stages", 2}, {"splits", 2}});
  ASSERT_EQ(kernel.launches.size(), 1u);
  EXPECT_EQ(kernel.launches[0].grid, 4 * 2);
  ASSERT_EQ(kernel.scratch.size(), 2u);
  EXPECT_EQ(kernel.scratch[0].bytes, 64 * 64 * 2 * 4);
  EXPECT_TRUE(kernel.scratch[1].zeroed);
}

TEST(contraction, asynchronous_copies_where_the_row_has_them) {
  native_kernel kernel = finalized(*square(256, f16, f16), "sm_80", {{"stages", 4}});
  std::string ptx(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size() - 1);
  EXPECT_THAT(ptx, testing::HasSubstr("cp.async.cg.shared.global"));
  EXPECT_THAT(ptx, testing::HasSubstr("mma.sync.aligned.m16n8k16"));
}

TEST(contraction, tiles_stay_within_their_row) {
  const std::array<std::array<std::int64_t, 3>, 5> sizes{
      {{128, 768, 768}, {4096, 4096, 4096}, {49, 512, 4608}, {12544, 64, 147}, {1, 1, 1}}};
  for (const target_row& target : gpu_targets())
    for (element_type type : {f16, bf16, f32, i8, f64})
      for (auto [m, n, k] : sizes) {
        SCOPED_TRACE(target.name + " " + std::string(name(type)));
        gpu::problem_size size{1, m, n, k, gpu::types_of(type, type)};
        size.plain = true;
        auto tiles = gpu::candidates(target, size);
        ASSERT_FALSE(tiles.empty());
        for (const gpu::tile_shape& tile : tiles) {
          EXPECT_LE(tile.stages * tile.stage_bytes(), target.gpu.lds_bytes);
          EXPECT_LE(tile.threads(target.gpu), target.gpu.max_threads);
          EXPECT_EQ(tile.threads(target.gpu) % target.gpu.wave, 0);
        }
        // Illegal values in a configuration are ignored.
        gpu::tile_shape tile = gpu::choose_tile(target, size, {{"tile_m", 1 << 20}});
        EXPECT_LT(tile.m, 1 << 20);
        EXPECT_EQ(gpu::staged_space(target, size).size(), tiles.size());
      }
}

TEST(contraction, candidates_compile) {
  for (const char* name : {"gfx942", "gfx1201", "sm_80"}) {
    const target_row target = find_target(name);
    gpu::problem_size size{1, 196, 256, 1152, gpu::types_of(f16, f16)};
    auto space = gpu::staged_space(target, size);
    std::ranges::stable_sort(space, {}, &codegen::candidate::cost);
    for (std::size_t i = 0; i < 40; i += 8) {
      std::string settings;
      for (const auto& [key, number] : space[i].configuration) settings += key + "=" + std::to_string(number) + " ";
      SCOPED_TRACE(target.name + " " + settings);
      native_kernel kernel = finalized(
          *convolution_fusion({1, 14, 14, 128}, {3, 3, 128, 256}, convolved(2, 1, 1), f16, epilogue::bias_relu), name,
          space[i].configuration);
      EXPECT_EQ(kernel.launches.back().statistics.spills, 0);
    }
    for (std::int64_t columns : {1, 2, 4})
      for (std::int64_t waves : {1, 2, 4, 8})
        for (std::int64_t stages : {0, 3, 6})
          EXPECT_EQ(finalized(*dot_fusion({4, 1024}, {256, 1024}, {.transpose_b = true, .type = f16}, f16, f16), name,
                              {{"narrow_columns", columns}, {"narrow_waves", waves}, {"narrow_stages", stages}})
                        .launches.back()
                        .statistics.spills,
                    0);
  }
}

// A function of many instructions is written out for two vectors of 8 sums in each part of a tile, not for all 128
// sums.
TEST(contraction, long_epilogues_are_loops) {
  const auto fusion = gpu_fusion({{f16, {3136, 96}}, {f16, {96, 384}}}, [](module& m, const std::vector<value>& p) {
    return std::vector{m.add(elementwise{scalar_function::erf}, {m.add(dot{.type = f16}, p)})};
  });
  const native_kernel kernel = finalize_for(*fusion, find_target("sm_90"));
  const std::string ptx(reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size() - 1);
  ASSERT_TRUE(kernel.launches.back().symbol.ends_with("_product")) << kernel.launches.back().symbol;
  std::size_t powers = 0;
  for (auto at = ptx.find("ex2.approx"); at != ptx.npos; at = ptx.find("ex2.approx", at + 1)) ++powers;
  EXPECT_GT(powers, 0u);
  EXPECT_LE(powers, 64u);
}

}  // namespace
}  // namespace kiln::test
