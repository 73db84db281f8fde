// Entries that are stored after the call: they are there when counters() returns or the cache is gone, and a claim is
// held until then.
#include "jit/cache/write_behind.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "fixtures.hpp"

using namespace kiln;
using namespace kiln::testing;

TEST(write_behind, runs_every_task_once) {
  std::atomic<int> done = 0;
  {
    write_behind tasks;
    tasks.finish();
    for (int i = 0; i < 100; ++i) tasks.add([&] { ++done; });
    tasks.finish();
    EXPECT_EQ(done, 100);
    for (int i = 0; i < 100; ++i) tasks.add([&] { ++done; });
  }
  EXPECT_EQ(done, 200);
}

TEST(write_behind, a_task_is_released_before_it_counts_as_done) {
  write_behind tasks;
  auto owned = std::make_shared<int>(1);
  tasks.add([owned] {});
  tasks.finish();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(write_behind, a_cache_stores_later) {
  scratch_folder scratch;
  const auto kernel = std::make_shared<const std::vector<std::byte>>(payload_number(1));
  const auto weights = std::make_shared<const std::vector<std::byte>>(payload_number(2, 5000));
  auto other = kernel_cache::open({scratch / "c"});
  {
    auto cache = kernel_cache::open({scratch / "c"});
    work_claim claim = cache->claim(key_number(1));
    cache->store_later(key_number(1), kernel, std::move(claim));
    EXPECT_EQ(cache->counters().stores, 1u);
    EXPECT_TRUE(other->claim(key_number(1)).held()) << "stored, so the claim is free again";
    EXPECT_EQ(other->find(key_number(1)), *kernel);
    cache->store_raw_later(key_number(1), {*weights, weights});
  }
  auto mapped = other->find_mapped(key_number(1));
  ASSERT_TRUE(mapped);
  EXPECT_TRUE(std::ranges::equal(mapped->bytes, *weights));
  EXPECT_EQ(weights.use_count(), 1) << "nobody needs them any more";
}

TEST(write_behind, a_failing_disk_is_a_warning) {
  scratch_folder scratch;
  faulty_file_system files;
  warnings said;
  auto cache = kernel_cache::open({.folder = scratch / "c", .files = &files, .warn = said.sink()});
  files.all_writing_fails = true;
  cache->store_later(key_number(1), std::make_shared<const std::vector<std::byte>>(payload_number(1)));
  const cache_counters counted = cache->counters();
  EXPECT_EQ(counted.stores, 0u);
  EXPECT_EQ(counted.errors, 1u);
  EXPECT_EQ(said.lines.size(), 1u);
}
