// Open kernels (ir/native_kernel.hpp) for every GPU row: one object whose launches compute their grids from the sizes
// and get the table of sizes. test/emulation/open_sizes.py compares the numbers.
#include <algorithm>

#include "gpu_targets.hpp"
#include "ir/error.hpp"
#include "ir/ops/segment_sum.hpp"

namespace kiln::test {
namespace {

constexpr auto f16 = element_type::f16, f32 = element_type::f32;
const dim batch = dim::symbol("batch"), seq = dim::symbol("seq");

shape of(element_type type, std::vector<dim> dims) { return {type, std::move(dims)}; }

std::unique_ptr<module> one(const std::vector<shape>& inputs, operation op) {
  return gpu_fusion(inputs, [&](module& m, const std::vector<value>& p) { return std::vector<value>{m.add(op, p)}; });
}

// Every launch reads sizes and has an open grid, except those that prepare weights.
void check_open(const module& fusion) {
  for (const target_row& target : gpu_targets()) {
    SCOPED_TRACE(target.name);
    native_kernel kernel = finalize_for(fusion, target);
    EXPECT_FALSE(kernel.sizes.empty());
    EXPECT_FALSE(kernel.bounded_sizes.empty());
    ASSERT_FALSE(kernel.launches.empty());
    for (const launch& l : kernel.launches) {
      if (l.prepare) continue;
      EXPECT_TRUE(l.open_grid) << l.symbol;
      EXPECT_TRUE(std::ranges::count(l.arguments, buffer_kind::sizes, &launch_argument::kind) == 1) << l.symbol;
      EXPECT_EQ(l.statistics.spills, 0) << l.symbol;
    }
    const std::vector<std::int64_t> table = at_sizes(kernel, {{"batch", 3}, {"seq", 7}});
    EXPECT_EQ(table.size(), kernel.sizes.size());
    const auto groups = [&] {
      std::int64_t sum = 0;
      for (const launch& l : kernel.launches) sum += l.grid;
      return sum;
    };
    const std::int64_t few = groups();
    at_sizes(kernel, {{"batch", 300}, {"seq", 700}});
    EXPECT_GT(groups(), few);
    EXPECT_TRUE(serves(kernel, {{"batch", 3}, {"seq", 7}}));
    EXPECT_FALSE(serves(kernel, {{"batch", 1 << 16}, {"seq", 1 << 12}}));
  }
}

TEST(gpu_open, pointwise_and_movement) {
  check_open(*gpu_fusion({of(f16, {batch, seq, 5}), of(f16, {5})}, [&](module& m, const std::vector<value>& p) {
    const value bias = m.add(broadcast{{batch, seq, 5}}, {p[1]});
    return std::vector<value>{m.add(elementwise{scalar_function::add}, {p[0], bias})};
  }));
  check_open(*one({of(f32, {batch, seq, 3})}, transpose{{1, 0, 2}}));
}

TEST(gpu_open, rows_of_known_and_of_open_length) {
  check_open(*one({of(f16, {batch, seq, 64})}, softmax{}));
  check_open(*one({of(f32, {batch, 4, seq})}, softmax{}));
  check_open(*one({of(f32, {batch, seq, 6})}, softmax{1, false}));
  check_open(*one({of(f16, {batch, seq, 768})}, normalize{{2}, 1e-5, true}));
  check_open(*one({of(f32, {batch, seq, 9})}, reduce{reduction_kind::mean, {1}, false}));
}

TEST(gpu_open, products) {
  check_open(*one({of(f16, {batch, seq, 64}), of(f16, {batch, 64, 48})}, dot{}));
  check_open(*one({of(f32, {batch, 5, seq}), of(f32, {batch, seq, 9})}, dot{}));
}

TEST(gpu_open, attention) {
  const shape q = of(f16, {batch, 2, seq, 64});
  check_open(*one({q, q, q}, attention{.scale = 0.125, .causal = true}));
  const shape wide = of(f32, {batch, 2, seq, 24});
  check_open(*one({wide, wide, wide}, attention{}));
  for (element_type type : {f16, f32}) {
    const shape open_heads = of(type, {batch * 4, seq, 24});
    check_open(*one({open_heads, open_heads, open_heads, of(type, {seq, seq})}, attention{}));
  }
}

target_row row_named(std::string_view name) {
  const std::vector<target_row> rows = gpu_targets();
  return *std::ranges::find(rows, name, &target_row::name);
}

std::string text_of(const native_kernel& kernel) {
  return {reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size()};
}

TEST(gpu_open, attention_of_an_open_batch_has_warpgroups) {
  const shape q = of(f16, {batch, 12, 197, 64});
  const auto fusion = one({q, q, q}, attention{.scale = 0.125});
  native_kernel kernel = finalize_for(*fusion, row_named("sm_90"));
  ASSERT_EQ(kernel.launches.size(), 1u);
  EXPECT_NE(text_of(kernel).find("wgmma.mma_async"), std::string::npos);
  ASSERT_EQ(kernel.launches[0].tensor_maps.size(), 3u);
  for (const tensor_map& map : kernel.launches[0].tensor_maps) EXPECT_TRUE(map.open_outer);
  at_sizes(kernel, {{"batch", 5}});
  EXPECT_EQ(kernel.launches[0].grid, 5 * 12 * 2);
}

// Small tiles of warpgroups have two workgroups on each of the 132 compute units.
TEST(gpu_open, tiles_that_nearly_fill_the_device_run_at_once) {
  const auto fusion = one({of(f16, {batch * 197, 3072}), of(f16, {3072, 768})}, dot{});
  native_kernel kernel = finalize_for(*fusion, row_named("sm_90"));
  at_sizes(kernel, {{"batch", 4}});
  std::int64_t groups = 0;
  for (const launch& l : kernel.launches)
    if (!l.prepare) groups += l.grid;
  EXPECT_EQ(groups, 13 * 12);
}

TEST(gpu_open, attention_of_few_queries_divides_the_keys) {
  const shape q = of(f16, {batch, 2, seq, 64}), k = of(f16, {batch, 2, dim::symbol("past"), 64});
  const auto fusion = one({q, k, k}, attention{.scale = 0.125});
  for (const target_row& target : gpu_targets()) {
    SCOPED_TRACE(target.name);
    native_kernel kernel = finalize_for(*fusion, target);
    ASSERT_EQ(kernel.launches.size(), 4u);
    const auto grids = [&](std::int64_t queries, std::int64_t keys) {
      at_sizes(kernel, {{"batch", 1}, {"seq", queries}, {"past", keys}});
      EXPECT_EQ(kernel.launches[0].grid > 0, keys == 0);
      return std::vector<std::int64_t>{kernel.launches[1].grid, kernel.launches[2].grid, kernel.launches[3].grid};
    };
    EXPECT_EQ(grids(1, 1000), (std::vector<std::int64_t>{0, 4, 2}));
    EXPECT_EQ(grids(4, 8000), (std::vector<std::int64_t>{0, 126, 2}));
    for (const auto& many : {grids(5, 512), grids(600, 1000)}) {
      EXPECT_GT(many[0], 0);
      EXPECT_EQ(many[1] + many[2], 0);
    }
    // Nor are many keys of few rows left to a few workgroups.
    if (kernel.launches[1].statistics.matrix_instructions > 0)
      EXPECT_EQ(grids(20, 1000), (std::vector<std::int64_t>{0, 80, 10}));
    // Few keys are not divided where matrix instructions take the rows.
    if (kernel.launches[1].statistics.matrix_instructions > 0) EXPECT_EQ(grids(1, 128)[1], 0);
    EXPECT_GT(grids(1, 129)[1], 0);
    // Without keys, the first launch stores zeros, and the others have nothing to do.
    for (std::int64_t queries : {1, 5}) EXPECT_EQ(grids(queries, 0), (std::vector<std::int64_t>{0, 0, 0}));
  }
}

// With a known batch and queries, 16-bit types stay on matrix instructions, in one launch with a fixed grid.
TEST(gpu_open, attention_of_known_queries_over_an_open_past) {
  const shape q = of(f16, {1, 8, 1, 64}), k = of(f16, {1, 2, dim::symbol("past"), 64});
  const auto fusion = one({q, k, k}, attention{.scale = 0.125});
  for (const target_row& target : gpu_targets()) {
    SCOPED_TRACE(target.name);
    const native_kernel kernel = finalize_for(*fusion, target);
    EXPECT_FALSE(kernel.sizes.empty());
    if (kernel.launches.size() != 1) continue;  // without such instructions: few queries
    EXPECT_FALSE(kernel.launches[0].open_grid);
    EXPECT_EQ(kernel.launches[0].statistics.spills, 0);
  }
  const std::vector<target_row> rows = gpu_targets();
  const auto row = [&](std::string_view name) { return *std::ranges::find(rows, name, &target_row::name); };
  for (const char* name : {"sm_80", "sm_90"}) EXPECT_EQ(finalize_for(*fusion, row(name)).launches.size(), 1u) << name;
}

// Exactly one version of a product has workgroups, and its scratch memory has room for the parts of a divided depth.
void check_versions(const module& fusion, const target_row& target, std::initializer_list<std::int64_t> sizes) {
  const native_kernel made = finalize_for(fusion, target);
  for (std::int64_t size : sizes) {
    SCOPED_TRACE(size);
    native_kernel kernel = made;
    at_sizes(kernel, {{"batch", size}, {"seq", size}});
    std::erase_if(kernel.launches, [](const launch& l) {
      return l.prepare || l.grid == 0 || l.symbol.ends_with("_split");  // f32 operands for the copy engine
    });
    ASSERT_EQ(kernel.launches.size(), 1u);
    const launch& l = kernel.launches[0];
    EXPECT_EQ(l.statistics.spills, 0) << l.symbol;
    for (const tensor_map& map : l.tensor_maps) {
      EXPECT_GE(map.dims.back(), 1);
      EXPECT_LE(map.box[1], 256);
    }
  }
}

// One of each kind: with the copy engine, with asynchronous copies, with and without matrix instructions.
std::vector<target_row> some_targets() {
  std::vector<target_row> rows = gpu_targets();
  static constexpr std::array<std::string_view, 5> names{"sm_90", "sm_80", "gfx942", "gfx1030", "gfx1100"};
  std::erase_if(rows, [](const target_row& row) { return std::ranges::find(names, row.name) == names.end(); });
  return rows;
}

TEST(gpu_open, products_have_versions_for_their_numbers_of_rows) {
  for (element_type type : {f16, f32}) {
    const auto fusion = one({of(type, {batch, 768}), of(type, {768, 320})}, dot{});
    for (const target_row& target : some_targets()) {
      SCOPED_TRACE(target.name);
      check_versions(*fusion, target, {1, 3, 4, 5, 16, 17, 64, 65, 129, 1000, 5000});
    }
  }
}

// Many rows of an open length that is a multiple of a vector are loaded in vectors.
TEST(gpu_open, products_of_open_depth_have_a_version_for_aligned_sizes) {
  const dim past = dim::symbol("past");
  for (element_type type : {f16, f32}) {
    const auto fusion = one({of(type, {batch, seq, past}), of(type, {batch, past, 64})}, dot{});
    for (const target_row& target : some_targets()) {
      SCOPED_TRACE(target.name);
      native_kernel kernel = finalize_for(*fusion, target);
      const auto used = [&](std::int64_t rows, std::int64_t depth) {
        at_sizes(kernel, {{"batch", 4}, {"seq", rows}, {"past", depth}});
        std::vector<std::string> result;
        for (const launch& l : kernel.launches)
          if (l.grid != 0) result.push_back(l.symbol);
        return result;
      };
      const auto general = used(7, 9), aligned = used(384, 384);
      EXPECT_EQ(general.size(), 1u);
      EXPECT_EQ(aligned.size(), 1u);
      EXPECT_NE(aligned, general);
      EXPECT_EQ(used(8, 8), general);
      EXPECT_EQ(used(384, 383), general);
      EXPECT_EQ(used(383, 512), aligned);
    }
  }
}

// Few rows of large weights: what is added is fetched before the end, at a place that depends on the number of rows.
TEST(gpu_open, products_with_an_addition_have_versions) {
  const auto fusion = gpu_fusion({of(f16, {batch, 768}), of(f16, {768, 768}), of(f16, {batch, 768})},
                                 [&](module& m, const std::vector<value>& p) {
                                   const value product = m.add(dot{.type = f16}, {p[0], p[1]});
                                   return std::vector<value>{m.add(elementwise{scalar_function::add}, {product, p[2]})};
                                 });
  for (const target_row& target : some_targets()) {
    SCOPED_TRACE(target.name);
    check_versions(*fusion, target, {1, 3, 16, 17, 512});
  }
}

TEST(gpu_open, convolutions_have_versions_for_their_numbers_of_images) {
  const auto of_window = [](std::int64_t window, std::int64_t stride) {
    return one({of(f16, {batch, 14, 14, 128}), of(f16, {window, window, 128, 64})},
               convolution{.strides = {stride, stride},
                           .dilations = {1, 1},
                           .pads_begin = {window / 2, window / 2},
                           .pads_end = {window / 2, window / 2},
                           .layout = tensor_layout::channels_last});
  };
  for (const target_row& target : some_targets())
    for (auto [window, stride] : {std::pair{1, 1}, {3, 1}, {3, 2}}) {
      SCOPED_TRACE(target.name + " " + std::to_string(window) + " " + std::to_string(stride));
      check_versions(*of_window(window, stride), target, {1, 2, 5, 16, 17, 64, 300});
    }
}

// Images of open height and width have no version for a few pixels; those whose size is divided by their strides do.
TEST(gpu_open, convolutions_of_open_images_have_versions_for_many_pixels) {
  const auto of_size = [](const dim& side) {
    return one({of(f16, {batch, side, side, 128}), of(f16, {3, 3, 128, 64})},
               convolution{.strides = {1, 1},
                           .dilations = {1, 1},
                           .pads_begin = {1, 1},
                           .pads_end = {1, 1},
                           .layout = tensor_layout::channels_last});
  };
  const auto has_few = [](const native_kernel& kernel) {
    return std::ranges::any_of(kernel.launches, [](const launch& l) { return l.symbol.ends_with("_narrow"); });
  };
  for (const target_row& target : some_targets()) {
    SCOPED_TRACE(target.name);
    EXPECT_FALSE(has_few(finalize_for(*of_size(seq), target)));
    check_versions(*of_size(seq), target, {1, 2, 5, 16, 33});
    check_versions(*of_size((seq + dim(31)) / dim(32)), target, {1, 2, 33, 100});
  }
}

// LLVM makes AMD's code: a product with a function of many instructions for each sum is not written out for large tiles
// beside small ones.
TEST(gpu_open, versions_for_amd_are_worth_their_code) {
  const auto fusion =
      gpu_fusion({of(f32, {batch, 64}), of(f32, {64, 128})}, [](module& m, const std::vector<value>& p) {
        return std::vector<value>{m.add(elementwise{scalar_function::erf}, {m.add(dot{}, {p[0], p[1]})})};
      });
  for (const target_row& target : some_targets())
    if (target.family == target_family::amdgpu) {
      const native_kernel kernel = finalize_for(*fusion, target);
      EXPECT_LE(std::ranges::count_if(kernel.launches, [](const launch& l) { return !l.prepare; }), 2) << target.name;
      check_versions(*fusion, target, {1, 16, 17, 300, 5000});
    }
}

TEST(gpu_open, large_products_use_the_copy_engine) {
  const std::vector<target_row> targets = gpu_targets();
  const auto sm_90 = std::ranges::find(targets, "sm_90", &target_row::name);
  ASSERT_NE(sm_90, targets.end());
  native_kernel kernel = finalize_for(*one({of(f16, {batch, 768}), of(f16, {768, 3072})}, dot{}), *sm_90);
  for (std::int64_t rows : {20, 512, 5000}) {
    at_sizes(kernel, {{"batch", rows}});
    const auto used = std::ranges::find_if(kernel.launches, [](const launch& l) { return !l.prepare && l.grid > 0; });
    ASSERT_NE(used, kernel.launches.end());
    ASSERT_EQ(used->tensor_maps.size(), 2u) << rows;
    EXPECT_EQ(used->tensor_maps[0].dims, (std::vector<std::int64_t>{768, rows}));
    // The copy with the depth innermost that products of few rows read, too (ir/shared_layout.hpp).
    EXPECT_EQ(used->tensor_maps[1].dims, (std::vector<std::int64_t>{768, 3072}));
    if (rows == 20) EXPECT_EQ(used->tensor_maps[0].box[1], 24);
  }
}

// f32 operands are split into bf16 parts first. Those of a row lie side by side, padded to boxes of 64.
TEST(gpu_open, large_f32_products_are_split_for_the_copy_engine) {
  const std::vector<target_row> targets = gpu_targets();
  const auto sm_90 = std::ranges::find(targets, "sm_90", &target_row::name);
  ASSERT_NE(sm_90, targets.end());
  const auto used_launches = [](const native_kernel& kernel) {
    std::vector<const launch*> result;
    for (const launch& l : kernel.launches)
      if (!l.prepare && l.grid > 0) result.push_back(&l);
    return result;
  };
  for (std::int64_t k : {768, 800}) {
    native_kernel product = finalize_for(*one({of(f32, {batch, k}), of(f32, {k, 3072})}, dot{}), *sm_90);
    for (std::int64_t rows : {200, 512, 5000}) {
      at_sizes(product, {{"batch", rows}});
      const auto used = used_launches(product);
      ASSERT_EQ(used.size(), 2u) << rows;
      ASSERT_EQ(used[1]->tensor_maps.size(), 2u) << rows;
      EXPECT_EQ(used[1]->tensor_maps[0].dims, (std::vector<std::int64_t>{3 * ((k + 63) / 64 * 64), rows}));
      EXPECT_EQ(used[1]->tensor_maps[1].dims, (std::vector<std::int64_t>{k, 3072}));
    }
    at_sizes(product, {{"batch", 1}});
    EXPECT_EQ(used_launches(product).size(), 1u);  // nothing is split for the other versions
    for (const launch& l : product.launches) EXPECT_FALSE(l.prepare && l.open_grid) << l.symbol;
  }
  native_kernel images = finalize_for(*one({of(f32, {batch, 14, 14, 256}), of(f32, {3, 3, 256, 256})},
                                           convolution{.strides = {1, 1},
                                                       .dilations = {1, 1},
                                                       .pads_begin = {1, 1},
                                                       .pads_end = {1, 1},
                                                       .layout = tensor_layout::channels_last}),
                                      *sm_90);
  at_sizes(images, {{"batch", 16}});
  const auto used = used_launches(images);
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(used[1]->tensor_maps.at(0).dims, (std::vector<std::int64_t>{256, 14, 14, 3 * 16}));
}

// Few results of many elements: the workgroups that share one are as many for all numbers of rows.
TEST(gpu_open, workgroups_share_reductions_of_open_rows) {
  for (const target_row& target : some_targets()) {
    SCOPED_TRACE(target.name);
    native_kernel kernel = finalize_for(
        *one({of(f16, {batch, 112, 112, 32})}, reduce{.kind = reduction_kind::mean, .axes = {1, 2}}), target);
    ASSERT_EQ(kernel.launches.size(), 2u);
    at_sizes(kernel, {{"batch", 1}});
    const std::int64_t of_one = kernel.launches[0].grid;
    EXPECT_GE(of_one, 16);
    at_sizes(kernel, {{"batch", 5}});
    EXPECT_EQ(kernel.launches[0].grid, 5 * of_one);
  }
}

// Of whole tensors always, in one launch; of an open batch where there are many elements.
TEST(gpu_open, workgroups_share_reductions_of_open_lengths) {
  for (const target_row& target : some_targets()) {
    SCOPED_TRACE(target.name);
    native_kernel whole =
        finalize_for(*one({of(f32, {batch, seq, 64})}, reduce{.kind = reduction_kind::max, .axes = {0, 1, 2}}), target);
    ASSERT_EQ(whole.launches.size(), 2u);  // the first one stores the maximum of nothing
    at_sizes(whole, {{"batch", 1}, {"seq", 3}});
    EXPECT_EQ(whole.launches[1].grid * whole.launches[1].grid_y, 64);
    at_sizes(whole, {{"batch", 1}, {"seq", 0}});
    EXPECT_EQ(whole.launches[1].grid, 0);
    native_kernel each = finalize_for(
        *one({of(f32, {batch, seq, seq, 32})}, reduce{.kind = reduction_kind::mean, .axes = {1, 2}}), target);
    ASSERT_EQ(each.launches.size(), 4u);
    for (std::int64_t side : {4, 100}) {
      at_sizes(each, {{"batch", 2}, {"seq", side}});
      EXPECT_EQ(each.launches[1].grid > 0, side == 100);
      EXPECT_EQ(each.launches[2].grid > 0, side == 100);
      EXPECT_EQ(each.launches[3].grid > 0, side == 4);
    }
  }
}

TEST(gpu_open, windows_over_images) {
  check_open(*one({of(f16, {batch, seq, seq, 16})}, pooling{.kind = pooling_kind::max,
                                                            .window = {3, 3},
                                                            .strides = {2, 2},
                                                            .dilations = {1, 1},
                                                            .pads_begin = {1, 1},
                                                            .pads_end = {1, 1},
                                                            .layout = tensor_layout::channels_last}));
  check_open(*one({of(f16, {batch, seq, seq, 16}), of(f16, {3, 3, 16, 24})},
                  convolution{.strides = {1, 1},
                              .dilations = {1, 1},
                              .pads_begin = {1, 1},
                              .pads_end = {1, 1},
                              .groups = 1,
                              .layout = tensor_layout::channels_last}));
}

// A ConvNeXt block's beginning. One stage computes the window and normalizes the channels of its pixels.
TEST(gpu_open, windows_whose_channels_are_normalized) {
  for (const std::int64_t channels : {24, 96}) {
    const auto fusion = gpu_fusion({of(f16, {batch, 14, 12, channels}), of(f16, {7, 7, 1, channels})},
                                   [&](module& m, const std::vector<value>& p) {
                                     const value sums = m.add(convolution{.strides = {1, 1},
                                                                          .dilations = {1, 1},
                                                                          .pads_begin = {3, 3},
                                                                          .pads_end = {3, 3},
                                                                          .groups = channels,
                                                                          .layout = tensor_layout::channels_last},
                                                              {p[0], p[1]});
                                     return std::vector<value>{m.add(normalize{{3}, 1e-6}, {sums})};
                                   });
    for (const target_row& target : some_targets()) {
      SCOPED_TRACE(target.name);
      native_kernel kernel = finalize_for(*fusion, target);
      ASSERT_EQ(kernel.launches.size(), 1u);
      EXPECT_TRUE(kernel.launches[0].open_grid);
      EXPECT_EQ(kernel.launches[0].statistics.spills, 0);
      at_sizes(kernel, {{"batch", 3}});
      const std::int64_t of_three = kernel.launches[0].grid;
      at_sizes(kernel, {{"batch", 300}});
      EXPECT_GT(kernel.launches[0].grid, 50 * of_three);
    }
  }
}

TEST(gpu_open, orders_and_running_sums) {
  check_open(*one({of(f32, {batch, 3, seq})}, cumulative_sum{.axis = 2}));
  check_open(*one({of(f32, {batch, seq, 5})}, cumulative_sum{1, true, true}));
  check_open(*one({of(f16, {batch, 5, seq})}, top_k{3, 2, true}));
  check_open(*one({of(f32, {seq, batch, 40})}, top_k{3, 2, false}));
}

TEST(gpu_open, resizes) {
  resize op;
  op.dims = {batch, seq * 2, 24}, op.scales = {1, 2, 1}, op.mode = resize_mode::linear;
  check_open(*one({of(f16, {batch, seq, 24})}, op));
  op.dims = {batch, 3, seq * 2}, op.scales = {1, 1, 2}, op.mode = resize_mode::cubic;
  check_open(*one({of(f32, {batch, 3, seq})}, op));
}

TEST(gpu_open, recurrent_layers) {
  for (auto [cell, gates] : {std::pair{recurrent_cell::lstm, 4}, {recurrent_cell::gru, 3}, {recurrent_cell::rnn, 1}}) {
    const std::int64_t hidden = 24, g = gates * hidden;
    std::vector<shape> inputs{of(f32, {seq, batch, g}), of(f32, {g, hidden}), of(f32, {g}), of(f32, {batch, hidden})};
    if (cell == recurrent_cell::lstm) inputs.push_back(of(f32, {batch, hidden}));
    check_open(*one(inputs, recurrent{cell, true, false}));
  }
}

TEST(gpu_open, sums_of_segments) {
  check_open(*one({of(f32, {seq, batch, 12}), of(element_type::i64, {seq})}, segment_sum{5}));
}

TEST(gpu_open, refusals_name_the_operation) {
  const auto fusion =
      one({of(f32, {1, 8, 8, seq}), of(f32, {3, 3, seq, 8})}, convolution{.strides = {1, 1},
                                                                          .dilations = {1, 1},
                                                                          .pads_begin = {0, 0},
                                                                          .pads_end = {0, 0},
                                                                          .groups = 1,
                                                                          .layout = tensor_layout::channels_last});
  try {
    finalize_for(*fusion, gpu_targets().front());
    FAIL() << "it was finalized";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    EXPECT_NE(std::string(e.what()).find("convolution"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace kiln::test
