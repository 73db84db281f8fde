#include "ir/native_kernel.hpp"

#include <gtest/gtest.h>

#include "ir/error.hpp"
#include "ir/hash.hpp"

using namespace kiln;

namespace {

native_kernel sample() {
  native_kernel k;
  for (int i = 0; i < 37; ++i) k.object.push_back(static_cast<std::byte>(i * 7));
  k.scratch = {{100, true}, {0, false}, {64, false, true}};
  k.launches.push_back({"pack", 7, 1, 2, 64, 10, {{buffer_kind::input, 3}, {buffer_kind::scratch, 0}}, true});
  k.launches.push_back({"main", 0, 1, 1, 1, 0, {{buffer_kind::scratch, 1}, {buffer_kind::output, 0}}, false});
  k.launches[1].tensor_maps = {{1, element_type::f16, {64, 300, 2}, {128, 38400}, {64, 128, 1}, 128, 256},
                               {0, element_type::i8, {4096}, {}, {256}}};
  k.launches[1].statistics = {168, 32, 40, 1, 8, 1024, 96};
  k.registers = 31;
  k.spills = 2;
  return k;
}

}  // namespace

TEST(native_kernel, round_trip) {
  auto bytes = serialize(sample());
  EXPECT_EQ(deserialize_native_kernel(bytes), sample());
  EXPECT_EQ(serialize(sample()), bytes);
  EXPECT_EQ(deserialize_native_kernel(serialize({})), native_kernel{});
}

// This entry was written before tensor maps, statistics and zeroed scratch existed. Such entries keep their bytes and
// are read with the same result.
TEST(native_kernel, kernels_without_new_fields_keep_their_bytes) {
  native_kernel k = sample();
  k.scratch.pop_back();
  k.launches[1].tensor_maps.clear();
  k.launches[1].statistics = {};
  EXPECT_EQ(blake3(serialize(k)).hex(), "9bac5e52a0d2c068cb24f489b8cb9f1d1efcce40dcb36298f951f234f1585594");
}

TEST(native_kernel, arguments_that_are_read_early) {
  native_kernel k = sample();
  k.launches[1].early_arguments = {0};
  EXPECT_EQ(deserialize_native_kernel(serialize(k)), k);
  k.launches[1].early_arguments = {static_cast<std::uint32_t>(k.launches[1].arguments.size())};
  EXPECT_THROW(serialize(k), error);
}

TEST(native_kernel, open_kernels_get_their_sizes_when_they_are_known) {
  const dim batch = dim::symbol("batch"), seq = dim::symbol("seq");
  native_kernel k;
  k.scratch.push_back({});
  k.scratch[0].open_bytes = batch * seq * 4;
  k.launches.push_back({"main", 1, 1, 1, 1, 0, {{buffer_kind::sizes, 0}, {buffer_kind::output, 0}}, false});
  k.launches[0].open_grid = (seq + 15) / 16;
  k.sizes = {batch, batch * seq, seq - 1};
  native_kernel read = deserialize_native_kernel(serialize(k));
  EXPECT_EQ(read, k);
  EXPECT_EQ(at_sizes(read, {{"batch", 3}, {"seq", 33}}), (std::vector<std::int64_t>{3, 99, 32}));
  EXPECT_EQ(read.launches[0].grid, 3);
  EXPECT_EQ(read.scratch[0].bytes, 396);
  EXPECT_THROW(at_sizes(read, {{"batch", 3}}), error);                                  // no value for seq
  EXPECT_THROW(at_sizes(read, {{"batch", 3}, {"seq", std::int64_t{1} << 50}}), error);  // too large
  EXPECT_THROW(at_sizes(read, {{"batch", std::int64_t{-3}}, {"seq", 9}}), error);       // negative scratch
  native_kernel none;
  EXPECT_TRUE(at_sizes(none, {}).empty());
  k.sizes.clear();
  EXPECT_THROW(serialize(k), error);  // an argument names a table that does not exist
}

TEST(native_kernel, tensor_maps_get_their_sizes_when_they_are_known) {
  const dim rows = dim::symbol("rows");
  native_kernel k = sample();
  tensor_map& map = k.launches[1].tensor_maps[0];
  map.dims.back() = 0, map.open_outer = rows, map.open_rows = dim::min(rows, 64);
  native_kernel read = deserialize_native_kernel(serialize(k));
  EXPECT_EQ(read, k);
  EXPECT_TRUE(is_open(k));
  at_sizes(read, {{"rows", 7}});
  EXPECT_EQ(read.launches[1].tensor_maps[0].dims.back(), 7);
  EXPECT_EQ(read.launches[1].tensor_maps[0].box[1], 7);
  EXPECT_THROW(at_sizes(read, {{"rows", 0}}), error);
  EXPECT_THROW(at_sizes(read, {{"rows", std::int64_t{1} << 40}}), error);
  map.dims.back() = 7;  // an older Kiln would read the map as one of known sizes
  EXPECT_THROW(serialize(k), error);
  map.dims = {64}, map.strides = {}, map.box = {64}, map.open_outer.reset();
  EXPECT_THROW(serialize(k), error);  // has no rows
}

// With 32-bit offsets, all sizes that an open kernel computes with must be below 2^31.
TEST(native_kernel, serves_sizes_below_its_bounds) {
  const dim batch = dim::symbol("batch");
  native_kernel k;
  k.sizes = {batch, batch * 1000 - 7};
  EXPECT_TRUE(serves(k, {{"batch", std::int64_t{1} << 33}})) << "it bounds nothing";
  k.bounded_sizes = {batch * 4};
  const native_kernel read = deserialize_native_kernel(serialize(k));
  EXPECT_EQ(read.bounded_sizes, k.bounded_sizes);
  EXPECT_TRUE(serves(read, {{"batch", 1000}}));
  EXPECT_FALSE(serves(read, {{"batch", 1 << 30}})) << "a bounded size";
  EXPECT_FALSE(serves(read, {{"batch", 1 << 22}})) << "an entry of the table";
  EXPECT_THROW(serves(read, {}), error);
}

TEST(native_kernel, any_alignment_will_do) {
  auto bytes = serialize(sample());
  for (std::size_t shift = 1; shift < 16; ++shift) {
    std::vector<std::byte> moved(shift);
    moved.insert(moved.end(), bytes.begin(), bytes.end());
    EXPECT_EQ(deserialize_native_kernel(std::span(moved).subspan(shift)), sample());
  }
}

TEST(native_kernel, damage_is_an_error_or_another_valid_kernel) {
  auto bytes = serialize(sample());
  int refused = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= std::byte(1u << (bit % 8));
    try {
      native_kernel k = deserialize_native_kernel(damaged);
      for (const launch& l : k.launches)
        for (const launch_argument& a : l.arguments)
          ASSERT_TRUE(a.kind != buffer_kind::scratch || a.index < k.scratch.size());
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), error_kind::corrupted);
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
  for (std::size_t size = 0; size + 16 < bytes.size(); ++size) {
    std::vector<std::byte> shorter(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(deserialize_native_kernel(shorter), error) << size;
  }
}

TEST(native_kernel, impossible_kernels_are_not_written) {
  auto refuse = [](auto edit) {
    native_kernel k = sample();
    edit(k);
    EXPECT_THROW(serialize(k), error);
  };
  refuse([](native_kernel& k) { k.launches[0].grid = -1; });
  refuse([](native_kernel& k) { k.launches[0].block = 0; });
  refuse([](native_kernel& k) { k.launches[0].symbol.clear(); });
  refuse([](native_kernel& k) { k.launches[1].arguments[0].index = 3; });
  refuse([](native_kernel& k) { k.launches[1].arguments[0].kind = static_cast<buffer_kind>(3); });
  refuse([](native_kernel& k) { k.scratch[0].bytes = -4; });
  refuse([](native_kernel& k) { k.scratch[0].zeroed = true; });
  refuse([](native_kernel& k) { k.launches[1].statistics.spills = -1; });
  refuse([](native_kernel& k) { k.launches[1].tensor_maps[0].argument = 2; });
  refuse([](native_kernel& k) { k.launches[1].tensor_maps[0].argument = 0; });
  refuse([](native_kernel& k) { k.launches[1].tensor_maps[0].dims.clear(); });
  refuse([](native_kernel& k) { k.launches[1].tensor_maps[0].dims[1] = 0; });
  refuse([](native_kernel& k) { k.launches[1].tensor_maps[0].strides[0] = 24; });
  refuse([](native_kernel& k) { k.launches[1].tensor_maps[0].box[0] = 257; });
  refuse([](native_kernel& k) { k.launches[1].tensor_maps[0].swizzle_bytes = 16; });
  refuse([](native_kernel& k) { k.launches[1].tensor_maps[0].type = element_type::i4; });
}
