// f32 as sums of bf16 parts (mlir_bridge/gpu/split_f32): products and attention of f32 on matrix units, and
// convolutions whose boxes the tensor copy engine reads. Contents of the PTX; numbers are compared on GPUs
// (bench/gpu/operator_kernels.py).
#include <gmock/gmock.h>

#include <string>

#include "ir/ops/all.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln::test {
namespace {

using enum element_type;
using testing::HasSubstr;
using testing::Not;
using dims_of = std::vector<std::int64_t>;

shape shape_of(element_type type, const dims_of& dims) { return {type, std::vector<dim>(dims.begin(), dims.end())}; }

struct finalized {
  native_kernel kernel;
  std::string ptx;
  std::size_t count(const std::string& text) const {
    std::size_t n = 0;
    for (std::size_t at = ptx.find(text); at != std::string::npos; at = ptx.find(text, at + 1)) ++n;
    return n;
  }
};

finalized finalize_for(const operation& op, const std::vector<dims_of>& inputs, element_type type = f32,
                       const kernel_configuration& configuration = {}) {
  static const compiler_context context;
  module m("kernel");
  std::vector<value> parameters;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    parameters.push_back(m.add_parameter("x" + std::to_string(i), shape_of(type, inputs[i])));
  m.set_outputs({m.add(op, parameters)}, {"y"});
  finalized done{
      finalize(portable_kernel::parse(context, write_kernel(m, "kernel")), find_target("sm_90"), configuration), {}};
  done.ptx.assign(reinterpret_cast<const char*>(done.kernel.object.data()), done.kernel.object.size() - 1);
  return done;
}

constexpr const char* warpgroups = "wgmma.mma_async.sync.aligned.m64n";

TEST(split_f32, products_are_six_products_of_parts) {
  const finalized found = finalize_for(dot{}, {{512, 1024}, {1024, 768}});
  ASSERT_EQ(found.kernel.launches.size(), 2u);
  const std::vector<launch>& l = found.kernel.launches;
  EXPECT_TRUE(l[0].prepare && !l[1].prepare);
  ASSERT_EQ(l[1].tensor_maps.size(), 2u);
  EXPECT_EQ(l[1].tensor_maps[0].type, bf16);
  EXPECT_EQ(l[1].tensor_maps[0].dims, (dims_of{1024, 512, 3}));
  // The kernel itself divides the other operand: weights take no second copy.
  EXPECT_EQ(l[1].tensor_maps[1].type, f32);
  EXPECT_EQ(l[1].tensor_maps[1].dims, (dims_of{768, 1024}));
  EXPECT_EQ(l[1].tensor_maps[1].box, (dims_of{32, 64}));
  EXPECT_EQ(found.kernel.scratch.size(), 1u);
  EXPECT_EQ(found.count(std::string("f32.bf16.bf16")), 6u * 4);
  EXPECT_THAT(found.ptx, Not(HasSubstr(".local")));
}

// Few rows share the weights of 128 columns, too, and read them as fast as memory gives them.
TEST(split_f32, tiles_have_as_many_rows_as_the_product) {
  const auto made = [](std::int64_t m, std::int64_t n, bool transposed) {
    const dims_of weights = transposed ? dims_of{n, 2048} : dims_of{2048, n};
    return finalize_for(dot{.transpose_b = transposed}, {{m, 2048}, weights});
  };
  const auto instruction = [](std::int64_t rows) { return warpgroups + std::to_string(rows) + "k16"; };
  EXPECT_THAT(made(20, 4096, false).ptx, HasSubstr(instruction(32)));
  EXPECT_THAT(made(197, 8192, false).ptx, HasSubstr(instruction(112)));
  // Tiles of 64 columns: two warpgroups take blocks of k in turn and then complete half of the rows each.
  const finalized in_turn = made(384, 768, false);
  EXPECT_EQ(in_turn.kernel.launches.back().block, 384);
  EXPECT_THAT(in_turn.ptx, HasSubstr("bar.arrive"));
  const finalized rows_of_depth = made(512, 8192, true);
  EXPECT_THAT(rows_of_depth.ptx, HasSubstr(instruction(128)));
  EXPECT_EQ(rows_of_depth.kernel.launches.back().tensor_maps.at(1).box, (dims_of{32, 128}));
}

TEST(split_f32, rows_need_no_alignment) {
  const finalized found = finalize_for(dot{}, {{3, 500, 501}, {3, 501, 503}});
  const tensor_map& a = found.kernel.launches.back().tensor_maps.at(0);
  EXPECT_EQ(a.dims, (dims_of{501, 500, 9}));
  EXPECT_EQ(a.strides, (dims_of{1008, 500 * 1008}));
}

TEST(split_f32, small_and_narrow_products_stay_on_the_vector_unit) {
  for (const auto& [m, n] : {std::pair{128, 128}, {16, 4096}, {1, 4096}})
    EXPECT_THAT(finalize_for(dot{}, {{m, 1024}, {1024, n}}).ptx, Not(HasSubstr(warpgroups)));
  EXPECT_THAT(finalize_for(dot{}, {{512, 1024}, {1024, 768}}, f32, {{"wgmma", 0}}).ptx, Not(HasSubstr(warpgroups)));
}

TEST(split_f32, attention_multiplies_parts_on_matrix_units) {
  for (std::int64_t depth : {64, 72, 128, 256}) {
    const finalized found =
        finalize_for(attention{.scale = 0.125}, {{1, 12, 300, depth}, {1, 12, 500, depth}, {1, 12, 500, depth}});
    ASSERT_EQ(found.kernel.launches.size(), 2u);
    EXPECT_THAT(found.ptx, HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")) << depth;
    EXPECT_LE(found.kernel.launches[1].lds_bytes, find_target("sm_90").gpu.lds_bytes);
  }
  // Depths that are not whole chunks of 8.
  EXPECT_THAT(finalize_for(attention{}, {{1, 2, 300, 36}, {1, 2, 300, 36}, {1, 2, 300, 36}}).ptx,
              Not(HasSubstr("mma.sync")));
}

TEST(split_f32, keys_and_values_are_split_once_for_many_rows) {
  const auto made = [](std::int64_t rows, const kernel_configuration& configuration = {}) {
    return finalize_for(attention{}, {{2, 12, rows, 64}, {2, 12, 500, 64}, {2, 12, 500, 64}}, f32, configuration);
  };
  const finalized many = made(300);
  ASSERT_EQ(many.kernel.launches.size(), 2u);
  // Blocks of 64 keys, the last one padded: three parts of 64 keys of 64 and of as many values.
  EXPECT_EQ(many.kernel.launches[0].grid, 8);
  EXPECT_EQ(many.kernel.launches[0].grid_y, 12);
  EXPECT_EQ(many.kernel.launches[0].grid_z, 2);
  EXPECT_EQ(many.kernel.scratch.at(0).bytes, 2 * 12 * 8 * 2 * 3 * 64 * 64 * 2);
  EXPECT_THAT(many.ptx, HasSubstr("cp.async.cg.shared.global"));
  // With one tile of rows there is nothing to share.
  EXPECT_EQ(made(64).kernel.launches.size(), 1u);
  EXPECT_EQ(made(300, {{"split_first", 0}}).kernel.launches.size(), 1u);
  EXPECT_EQ(made(64, {{"split_first", 1}}).kernel.launches.size(), 2u);
}

TEST(split_f32, keys_are_divided_where_the_last_round_of_workgroups_would_be_short) {
  const auto scratch = [](std::int64_t heads) {
    return finalize_for(attention{}, std::vector<dims_of>(3, {1, heads, 2048, 128})).kernel.scratch.size();
  };
  // 16 workgroups a head on 132 compute units: 128 at a time, or 192, which are one and a half rounds.
  EXPECT_EQ(scratch(8), 1u);
  EXPECT_EQ(scratch(12), 4u);
}

// Eight waves of 16 rows share blocks of keys; their queries are f32 in shared memory, beside the parts of 64 keys and
// values, or of 32 of deep heads.
TEST(split_f32, many_rows_of_deep_heads_store_queries_whole) {
  for (const auto& [depth, keys] : {std::pair{128, 64}, {256, 32}}) {
    const launch l = finalize_for(attention{}, std::vector<dims_of>(3, {1, 12, 2048, depth})).kernel.launches.at(1);
    EXPECT_EQ(l.block, 256);
    EXPECT_EQ(l.lds_bytes, 128 * depth * 4 + 2 * 3 * keys * depth * 2);
  }
}

TEST(split_f32, one_query_divides_the_keys) {
  const finalized found = finalize_for(attention{}, {{1, 12, 1, 64}, {1, 12, 8192, 64}, {1, 12, 8192, 64}});
  EXPECT_EQ(found.kernel.scratch.size(), 3u);
}

TEST(split_f32, one_tile_of_rows_has_shorter_blocks_of_keys) {
  const auto bytes = [](std::int64_t rows, const kernel_configuration& configuration = {}) {
    const std::vector<dims_of> inputs{{1, 12, rows, 64}, {1, 12, 512, 64}, {1, 12, 512, 64}};
    return finalize_for(attention{}, inputs, f32, configuration).kernel.launches.at(0).lds_bytes;
  };
  EXPECT_EQ(bytes(16), bytes(16, {{"keys", 32}}));
  EXPECT_EQ(bytes(17), bytes(17, {{"keys", 64}}));
}

TEST(stored_queries, deep_heads_read_queries_from_shared_memory) {
  const std::vector<dims_of> inputs(3, {1, 4, 1024, 256});
  const auto bytes = [&](const kernel_configuration& configuration) {
    return finalize_for(attention{}, inputs, f16, configuration).kernel.launches.at(0).lds_bytes;
  };
  EXPECT_EQ(bytes({{"wgmma", 0}}) - bytes({{"wgmma", 0}, {"stored_queries", 0}}), 64 * 256 * 2);
}

TEST(wgmma_attention, deep_heads_have_shorter_blocks_of_keys) {
  const std::vector<dims_of> inputs(3, {1, 16, 2048, 256});
  const finalized found = finalize_for(attention{}, inputs, f16);
  EXPECT_THAT(found.ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n80k16"));
  EXPECT_THAT(found.ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n256k16"));
}

convolution windowed(std::int64_t pad, std::int64_t stride = 1, std::int64_t groups = 1) {
  return {{stride, stride}, {1, 1}, {pad, pad}, {pad, pad}, groups, tensor_layout::channels_last};
}

TEST(wgmma_image, boxes_of_pixels_are_copied_for_each_position_of_the_window) {
  const finalized found = finalize_for(windowed(1), {{32, 14, 14, 256}, {3, 3, 256, 256}}, f16);
  ASSERT_EQ(found.kernel.launches.size(), 1u);
  EXPECT_THAT(found.ptx, HasSubstr(warpgroups));
  EXPECT_THAT(found.ptx, HasSubstr("cp.async.bulk.tensor.4d"));
  const tensor_map& image = found.kernel.launches[0].tensor_maps.at(0);
  EXPECT_EQ(image.dims, (dims_of{256, 14, 14, 32}));
  EXPECT_EQ(image.box[0], 64);
  EXPECT_LE(image.box[1] * image.box[2], 256);
  // f32: the parts of an image follow each other.
  const finalized wide = finalize_for(windowed(1), {{32, 14, 14, 256}, {3, 3, 256, 256}});
  EXPECT_EQ(wide.kernel.launches.back().tensor_maps.at(0).dims, (dims_of{256, 14, 14, 96}));
}

TEST(wgmma_image, other_instructions_where_it_does_not_apply) {
  // One image does not fill the device; strides; groups; few channels.
  EXPECT_THAT(finalize_for(windowed(1), {{1, 14, 14, 256}, {3, 3, 256, 256}}, f16).ptx, Not(HasSubstr(warpgroups)));
  EXPECT_THAT(finalize_for(windowed(1, 2), {{32, 28, 28, 256}, {3, 3, 256, 256}}, f16).ptx, Not(HasSubstr(warpgroups)));
  EXPECT_THAT(finalize_for(windowed(1, 1, 4), {{32, 28, 28, 256}, {3, 3, 64, 256}}, f16).ptx,
              Not(HasSubstr(warpgroups)));
  EXPECT_THAT(finalize_for(windowed(1), {{32, 56, 56, 32}, {3, 3, 32, 128}}, f16).ptx, Not(HasSubstr(warpgroups)));
}

}  // namespace
}  // namespace kiln::test
