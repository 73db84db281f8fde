#include "jit/cache/maintenance.hpp"

#include <gtest/gtest.h>

#include "fixtures.hpp"
#include "ir/error.hpp"
#include "jit/cache/transfer.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

void fill(const std::filesystem::path& folder, int count) {
  auto cache = kernel_cache::open({folder});
  for (int n = 0; n < count; ++n) cache->store(key_number(n), payload_number(n, 1000));
  cache->store_raw(key_number(0), payload_number(0, 5000));
}

std::filesystem::path file_of(const std::filesystem::path& folder, int n) {
  return folder / entry_file_name(key_number(n).hash(), entry_kind::kernel);
}

}  // namespace

TEST(cache_maintenance, statistics) {
  scratch_folder scratch;
  fill(scratch / "c", 5);
  write_bytes(file_of(scratch / "c", 77), payload_number(1));
  write_bytes(scratch / "c/.tmp-1-2", {});
  cache_statistics stats = cache_stats(scratch / "c");
  EXPECT_EQ(stats.kernels, 5u);
  EXPECT_EQ(stats.prepared, 1u);
  EXPECT_EQ(stats.prepared_bytes, 4096u + 5000u);
  EXPECT_GT(stats.kernel_bytes, 5000u);
  EXPECT_EQ(stats.unreadable, 1u);
  EXPECT_EQ(stats.temporaries, 1u);
  EXPECT_EQ(stats.by_target, (std::map<std::string, std::uint64_t>{{"x86-64-v4 +avx512f", 6}}));
  EXPECT_LE(stats.oldest_use, stats.newest_use);
  EXPECT_THROW(cache_stats(scratch / "missing"), error);
}

TEST(cache_maintenance, verification_finds_and_removes) {
  scratch_folder scratch;
  fill(scratch / "c", 5);
  EXPECT_EQ(verify_cache(scratch / "c", true).checked, 6u);
  auto bytes = read_bytes(file_of(scratch / "c", 2));
  bytes.back() ^= std::byte{1};
  write_bytes(file_of(scratch / "c", 2), bytes);
  // Intact, but under the name of another entry.
  std::filesystem::copy_file(file_of(scratch / "c", 3), file_of(scratch / "c", 99));
  auto found = verify_cache(scratch / "c", false);
  ASSERT_EQ(found.damaged.size(), 2u);
  EXPECT_EQ(verify_cache(scratch / "c", true).damaged.size(), 2u);
  found = verify_cache(scratch / "c", true);
  EXPECT_EQ(found.damaged.size(), 0u);
  EXPECT_EQ(found.checked, 5u);
}

TEST(cache_maintenance, collection) {
  scratch_folder scratch;
  fill(scratch / "c", 10);
  auto cache = kernel_cache::open({scratch / "c"});
  EXPECT_TRUE(cache->find(key_number(0)));
  eviction done = collect_cache(scratch / "c", 4000);
  EXPECT_LE(done.bytes_left, 4000u);
  EXPECT_EQ(total_bytes(list_entries(posix_file_system(), scratch / "c")), done.bytes_left);
  EXPECT_GT(done.removed, 5u);
  EXPECT_TRUE(cache->find(key_number(0)));
  EXPECT_EQ(collect_cache(scratch / "c", 0).bytes_left, 0u);
}

TEST(cache_maintenance, exported_entries_are_a_layer_and_can_be_imported) {
  scratch_folder scratch;
  fill(scratch / "c", 5);
  auto bytes = read_bytes(file_of(scratch / "c", 4));
  bytes[200] ^= std::byte{1};
  write_bytes(file_of(scratch / "c", 4), bytes);
  cache_copy done = copy_cache(scratch / "c", scratch / "image/layer");
  EXPECT_EQ(done.copied, 5u);
  EXPECT_EQ(done.damaged, 1u);
  EXPECT_EQ(read_bytes(file_of(scratch / "image/layer", 1)), read_bytes(file_of(scratch / "c", 1)));
  auto cache = kernel_cache::open({.folder = scratch / "other", .read_only_layers = {scratch / "image/layer"}});
  EXPECT_EQ(cache->find(key_number(3)), payload_number(3, 1000));
  done = copy_cache(scratch / "image/layer", scratch / "c");
  EXPECT_EQ(done.copied, 0u);
  EXPECT_EQ(done.present, 5u);
  done = copy_cache(scratch / "image/layer", scratch / "few", {.wanted = [](const entry_head& head) {
                      return field(head.fields, "payload") == key_number(2).payload;
                    }});
  EXPECT_EQ(done.copied, 1u);
}

TEST(cache_maintenance, explanation_names_the_field) {
  scratch_folder scratch;
  fill(scratch / "near", 3);
  fill(scratch / "far", 1);
  kernel_key old = key_number(1);
  old.llvm = "21.0.0";
  old.driver = "550";
  old.inputs[0].dims[0] = 8;
  kernel_cache::open({scratch / "far"})->store(old, payload_number(1));
  std::vector<std::filesystem::path> folders{scratch / "far", scratch / "near"};
  EXPECT_TRUE(explain_cache(folders, key_number(1)).hit);
  kernel_key wanted = key_number(1);
  wanted.llvm = "23.0.0";
  cache_explanation why = explain_cache(folders, wanted);
  EXPECT_FALSE(why.hit);
  EXPECT_EQ(why.nearest, key_number(1).hash());
  ASSERT_EQ(why.differences.size(), 1u);
  EXPECT_EQ(why.differences[0].field, "llvm");
  EXPECT_EQ(why.differences[0].wanted, "23.0.0");
  EXPECT_EQ(why.differences[0].found, "22.1.0");
  EXPECT_EQ(explain_cache({scratch / "far"}, wanted).differences.size(), 3u);
  EXPECT_FALSE(explain_cache(folders, key_number(50)).nearest);
  EXPECT_TRUE(explain_cache(folders, key_number(0), entry_kind::prepared).hit);
  EXPECT_FALSE(explain_cache(folders, key_number(1), entry_kind::prepared).hit);
}
