// The generators of everything except matrix products and attention, for every GPU row: structure and statistics.
// Numbers are compared in test/emulation and by the scripts for real devices.
#include "gpu_targets.hpp"
#include "ir/ops/cache_update.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/kinds/recurrent/gpu_held_weights.hpp"

namespace kiln::test {
namespace {

constexpr auto f16 = element_type::f16, f32 = element_type::f32, i64 = element_type::i64;

shape of(element_type type, std::vector<dim> dims) { return {type, std::move(dims)}; }

template <class Op>
void check_one(const std::vector<shape>& inputs, Op op, bool private_memory = false) {
  check_all_targets(
      *gpu_fusion(inputs, [&](module& m, const std::vector<value>& p) { return std::vector<value>{m.add(op, p)}; }),
      private_memory);
}

TEST(gpu_pointwise, flat_odd_and_broadcast) {
  for (auto dims : {std::vector<dim>{1}, {4096}, {3, 37}, {2, 3, 64}})
    check_all_targets(*gpu_fusion({of(f16, dims), of(f16, {dims.back()})}, [&](module& m, const std::vector<value>& p) {
      value b = m.add(broadcast{dims}, {p[1]});
      return std::vector<value>{
          m.add(elementwise{scalar_function::sigmoid}, {m.add(elementwise{scalar_function::add}, {p[0], b})})};
    }));
}

TEST(gpu_pointwise, every_function_on_f32) {
  for (std::size_t i = 0; i < scalar_function_table.size(); ++i) {
    auto function = static_cast<scalar_function>(i);
    bool logical = row(function).result == scalar_result::logical,
         integral = row(function).name.starts_with("bit_") || row(function).name.starts_with("shift_");
    element_type type = logical ? element_type::boolean : integral ? element_type::i32 : f32;
    std::vector<shape> inputs(static_cast<std::size_t>(row(function).arity), of(type, {37}));
    if (function == scalar_function::where) inputs[0].type = element_type::boolean;
    SCOPED_TRACE(std::string(row(function).name));
    check_one(inputs, elementwise{function});
  }
}

TEST(gpu_pointwise, transposes) {
  check_one({of(f16, {128, 192})}, transpose{{1, 0}});
  check_one({of(f32, {3, 37, 70})}, transpose{{0, 2, 1}});
  check_one({of(f16, {2, 16, 12, 64})}, transpose{{0, 2, 1, 3}});
}

TEST(gpu_rows, softmax_of_every_length) {
  for (std::int64_t n : {1, 7, 64, 1000, 4096, 100000}) {
    check_one({of(f16, {5, n})}, softmax{});
    check_one({of(f32, {3, n})}, softmax{-1, true});
  }
  check_one({of(f32, {2, 21, 40})}, softmax{1, false});
}

TEST(gpu_rows, normalize) {
  check_one({of(f16, {8192, 4096})}, normalize{{1}, 1e-5, true});
  check_one({of(f32, {7, 37})}, normalize{{1}, 1e-5, false});
  check_one({of(f16, {2, 9, 9, 24})}, normalize{{1, 2}, 1e-5, true});
  check_one({of(f16, {2, 8, 100000})}, normalize{{2}, 1e-5, true});
}

TEST(gpu_rows, reductions) {
  for (auto kind : {reduction_kind::sum, reduction_kind::mean, reduction_kind::max, reduction_kind::product}) {
    check_one({of(f16, {33, 70})}, reduce{kind, {1}, false});
    check_one({of(f32, {33, 70})}, reduce{kind, {0}, true});
  }
  check_one({of(f32, {1 << 20})}, reduce{reduction_kind::sum, {0}, false});
  check_one({of(f16, {100000, 24})}, reduce{reduction_kind::sum, {0}, false});
  check_one({of(i64, {40, 30})}, reduce{reduction_kind::max, {1}, false});
  check_one({of(element_type::boolean, {40, 30})}, reduce{reduction_kind::max, {1}, false});
  check_one({of(f16, {10, 1001})}, arg_reduce{true, 1});
  check_one({of(f32, {10, 32, 20})}, arg_reduce{false, 1, true, true});
}

TEST(gpu_windows, pooling) {
  pooling op;
  op.layout = tensor_layout::channels_last;
  op.window = {3, 3}, op.strides = {2, 2}, op.dilations = {1, 1}, op.pads_begin = {1, 1}, op.pads_end = {1, 1};
  check_one({of(f16, {1, 56, 56, 64})}, op);
  op.kind = pooling_kind::average;
  check_one({of(f32, {2, 13, 11, 5})}, op);
}

TEST(gpu_windows, depthwise) {
  convolution op;
  op.layout = tensor_layout::channels_last;
  op.strides = {1, 1}, op.dilations = {1, 1}, op.pads_begin = {1, 1}, op.pads_end = {1, 1}, op.groups = 64;
  check_one({of(f16, {1, 56, 56, 64}), of(f16, {3, 3, 1, 64})}, op);
  op.groups = 5;
  check_one({of(f32, {1, 13, 11, 5}), of(f32, {3, 3, 1, 10})}, op);
}

// A thread of a device with few compute units computes many pixels; their sums must fit into its registers.
TEST(gpu_windows, large_windows_on_small_devices_do_not_spill) {
  convolution op;
  op.layout = tensor_layout::channels_last;
  op.strides = {2, 2}, op.dilations = {1, 1}, op.pads_begin = {2, 2}, op.pads_end = {2, 2}, op.groups = 144;
  const auto m = gpu_fusion({of(f16, {1, 56, 56, 144}), of(f16, {5, 5, 1, 144})},
                            [&](module& m, const std::vector<value>& p) { return std::vector<value>{m.add(op, p)}; });
  for (const auto& launch : finalize_for(*m, find_target("gfx1036")).launches) EXPECT_EQ(launch.statistics.spills, 0);
}

// Processors without a multiply-add that reads f16 convert every element. Converting a row of the window at a time
// needs few registers; all of them ahead took LLVM's register allocator a minute on a busy machine.
TEST(gpu_windows, large_windows_of_f16_do_not_spill_where_each_element_is_converted) {
  convolution op;
  op.layout = tensor_layout::channels_last;
  op.strides = {1, 1}, op.dilations = {1, 1}, op.pads_begin = {2, 2}, op.pads_end = {2, 2};
  // With and without threads that have no result.
  for (std::int64_t channels : {672, 2048}) {
    op.groups = channels;
    const auto m = gpu_fusion({of(f16, {1, 14, 14, channels}), of(f16, {5, 5, 1, channels})},
                              [&](module& m, const std::vector<value>& p) { return std::vector<value>{m.add(op, p)}; });
    for (const char* name : {"gfx900", "gfx902", "gfx904", "gfx909", "gfx90c", "gfx9-generic"})
      for (const auto& launch : finalize_for(*m, find_target(name)).launches) {
        EXPECT_EQ(launch.statistics.spills, 0) << name;
        EXPECT_LE(launch.statistics.registers, 128) << name;
      }
  }
}

// One launch, with all channels of a pixel in a workgroup: in a part of a wave, in a wave, in several waves.
TEST(gpu_windows, normalized_depthwise) {
  struct row {
    element_type type;
    std::int64_t channels, window;
  };
  for (const auto& [type, channels, window] :
       {row{f16, 8, 3}, row{f16, 768, 3}, row{f32, 24, 3}, row{f32, 2048, 3}, row{f32, 384, 7}}) {
    convolution op;
    op.layout = tensor_layout::channels_last;
    op.strides = {1, 1}, op.dilations = {1, 1}, op.groups = channels;
    op.pads_begin = op.pads_end = {window / 2, window / 2};
    const auto m =
        gpu_fusion({of(type, {1, 14, 14, channels}), of(type, {window, window, 1, channels}), of(type, {channels})},
                   [&](module& m, const std::vector<value>& p) {
                     value y = m.add(op, {p[0], p[1]});
                     value bias = m.add(broadcast{y.type().dims}, {p[2]});
                     y = m.add(elementwise{scalar_function::add}, {y, bias});
                     return std::vector<value>{m.add(normalize{{3}, 1e-6, true}, {y})};
                   });
    check_all_targets(*m);
    EXPECT_EQ(finalize_for(*m, gpu_targets().front()).launches.size(), 1u);
  }
}

// Several waves combine one row through shared memory, so the workgroup cannot process a second row (sm_90 takes four
// warps here).
TEST(gpu_rows, teams_of_several_waves_are_a_workgroup_each) {
  auto m = gpu_fusion({of(f32, {4096, 1024})}, [](module& m, const std::vector<value>& p) {
    return std::vector<value>{m.add(softmax{-1, false}, p)};
  });
  for (const target_row& target : gpu_targets()) {
    SCOPED_TRACE(target.name);
    const launch l = finalize_for(*m, target).launches.back();
    const std::int64_t rows = 4096 / l.grid;
    EXPECT_TRUE(rows == 1 || l.block / rows <= target.gpu.wave) << l.block << " threads for " << rows << " rows";
  }
}

TEST(gpu_order, top_k_and_cumulative_sum) {
  check_one({of(f32, {1, 8400})}, top_k{300, -1, true});
  check_one({of(f16, {3, 100000})}, top_k{50, 1, false});
  check_one({of(i64, {7, 33, 5})}, top_k{4, 1, true});
  check_one({of(f16, {5, 1001})}, cumulative_sum{1, false, true});
  check_one({of(f32, {1000, 40, 40})}, cumulative_sum{1, true, false});
}

// Flattened scores of some rows, as detection heads rank them: the kernel that ranks also computes them.
// The first launch computes the keys of its chunks in shared memory, where they fit.
TEST(gpu_order, top_k_on_nvidia_needs_no_launch_for_keys) {
  const target_row hopper = find_target("sm_90");
  auto launches = [&](const shape& input, std::int64_t k) {
    const auto m = gpu_fusion({input}, [&](module& body, const std::vector<value>& p) {
      return std::vector<value>{body.add(top_k{k, 1, true}, {p[0]})};
    });
    return finalize_for(*m, hopper).launches.size();
  };
  EXPECT_EQ(launches(of(f32, {1, 1000}), 10), 1u);
  EXPECT_EQ(launches(of(f32, {1, 8400}), 300), 2u);
  EXPECT_EQ(launches(of(f32, {2, 24000}), 300), 3u);
  EXPECT_EQ(launches(of(f32, {1, 20000}), 5000), 2u);  // keys, which do not fit, and one rank
}

TEST(gpu_order, top_k_of_computed_elements_has_no_launch_for_them) {
  for (element_type type : {f32, f16}) {
    auto m = gpu_fusion({of(type, {1, 2000, 80}), of(i64, {1, 30, 80})}, [](module& m, const std::vector<value>& p) {
      value scores = m.add(gather_elements{1}, {m.add(elementwise{scalar_function::sigmoid}, {p[0]}), p[1]});
      value best = m.add(top_k{30, 1, true}, {m.add(reshape{{1, 2400}}, {scores})});
      return std::vector<value>{best, {best.producer, 1}};
    });
    check_all_targets(*m);
    // On NVIDIA GPUs, the keys need no launch, either.
    for (const target_row& target : gpu_targets())
      EXPECT_EQ(finalize_for(*m, target).launches.size(), target.family == target_family::nvidia ? 1u : 2u);
  }
}

TEST(gpu_rows, normalize_writes_its_rows) {
  for (std::int64_t n : {96, 100000})
    check_all_targets(*gpu_fusion({of(f16, {50, n}), of(i64, {7})}, [](module& m, const std::vector<value>& p) {
      value rows = m.add(gather{0}, {p[0], p[1]});
      value wide = m.add(convert{f32}, {rows});
      return std::vector<value>{rows, m.add(convert{f16}, {m.add(normalize{{1}, 1e-5, false}, {wide})})};
    }));
}

TEST(gpu_order, scatter) {
  check_one({of(f16, {50, 64}), of(i64, {9, 1}), of(f16, {9, 64})}, scatter_nd{scatter_reduction::none});
  check_one({of(f32, {50, 7}), of(i64, {9, 2}), of(f32, {9})}, scatter_nd{scatter_reduction::add});
  check_one({of(f16, {20, 30}), of(i64, {20, 5}), of(f16, {20, 5})}, scatter_elements{1, scatter_reduction::max});
  check_one({of(f16, {2, 30, 8}), of(f16, {2, 5, 8}), of(i64, {2})}, cache_update{1});
}

TEST(gpu_order, recurrent) {
  constexpr std::int64_t t = 5, b = 2, h = 40;
  for (auto [cell, gates] : {std::pair{recurrent_cell::lstm, 4}, {recurrent_cell::gru, 3}, {recurrent_cell::rnn, 1}}) {
    std::vector<shape> inputs{of(f16, {t, b, gates * h}), of(f16, {gates * h, h}), of(f16, {gates * h}),
                              of(f16, {b, h})};
    if (cell == recurrent_cell::lstm) inputs.push_back(of(f16, {b, h}));
    check_one(inputs, recurrent{cell, true, false});
  }
}

// What a workgroup holds of the weights decides the code: registers, shared memory, and the rest in global memory.
TEST(gpu_order, recurrent_weights_of_any_size) {
  constexpr std::int64_t t = 3, b = 2;
  for (auto [type, h] : {std::pair{f16, 128}, {f32, 128}, {f16, 256}})
    check_one({of(type, {t, b, 4 * h}), of(type, {4 * h, h}), of(type, {4 * h}), of(type, {b, h}), of(type, {b, h})},
              recurrent{recurrent_cell::lstm, false, false});
  for (auto [type, h] : {std::pair{f16, 64}, {f32, 12}, {element_type::bf16, 36}})
    check_one({of(type, {t, b, 3 * h}), of(type, {3 * h, h}), of(type, {3 * h}), of(type, {b, h})},
              recurrent{recurrent_cell::gru, false, h == 64});
}

TEST(gpu_order, recurrent_weights_are_held_where_they_fit) {
  const target_row hopper = find_target("sm_90");
  const auto lstm = gpu::plan_held_weights(hopper, 128, 512, f16), wide = gpu::plan_held_weights(hopper, 128, 512, f32),
             gru = gpu::plan_held_weights(hopper, 64, 192, f16), large = gpu::plan_held_weights(hopper, 256, 1024, f16);
  EXPECT_EQ(lstm->in_registers, 64);
  EXPECT_EQ(wide->in_registers + wide->in_shared, 128);
  EXPECT_GT(wide->in_shared, 0);
  EXPECT_EQ(gru->parts, 4);
  EXPECT_EQ(gru->in_registers, 8);
  EXPECT_GT(large->in_shared, 0);
  EXPECT_LT(large->in_registers + large->in_shared, large->words());
  EXPECT_FALSE(gpu::plan_held_weights(hopper, 512, 2048, f16));
  EXPECT_FALSE(gpu::plan_held_weights(hopper, 30, 120, f16));
  EXPECT_FALSE(gpu::plan_held_weights(find_target("gfx942"), 128, 512, f16));
}

// Elements of less than a byte: threads write bytes, and a last launch packs them.
TEST(gpu_packed, outputs_are_packed_by_a_launch_of_their_own) {
  for (element_type packed : {element_type::i4, element_type::u4, element_type::i2, element_type::f4e2m1})
    for (bool product : {false, true}) {
      auto m = gpu_fusion({of(f16, {64, 128}), of(f16, {128, 96})}, [&](module& k, const std::vector<value>& in) {
        const value wide = product ? k.add(dot{}, {in[0], in[1]}) : k.add(transpose{{1, 0}}, {in[0]});
        return std::vector<value>{k.add(convert{packed}, {wide})};
      });
      for (const target_row& target : gpu_targets()) {
        SCOPED_TRACE(target.name);
        const native_kernel kernel = finalize_for(*m, target);
        EXPECT_NE(kernel.launches.back().symbol.find("pack_0"), std::string::npos) << kernel.launches.back().symbol;
        EXPECT_EQ(kernel.launches.back().statistics.spills, 0);
      }
    }
}

}  // namespace
}  // namespace kiln::test
