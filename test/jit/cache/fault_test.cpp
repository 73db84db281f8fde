// Every call that the cache makes to the file system fails once, in every way: the run goes on, nothing wrong is ever found.
#include <gtest/gtest.h>

#include "fixtures.hpp"
#include "jit/cache/maintenance.hpp"
#include "ir/error.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

// Everything a run does: open, miss, store, hit, map, repair, evict. Returns false where something wrong was found.
bool run_through(file_system& files, const std::filesystem::path& folder) {
  bool right = true;
  auto check_found = [&](const auto& found, int n) { right = right && (!found || *found == payload_number(n, 900)); };
  auto cache = kernel_cache::open({.folder = folder, .read_only_layers = {folder.parent_path() / "layer"}, .max_bytes = 5000, .files = &files, .warn = [](const std::string&) {}});
  for (int n = 0; n < 6; ++n) {
    check_found(cache->find(key_number(n)), n);
    cache->store(key_number(n), payload_number(n, 900));
    check_found(cache->find(key_number(n)), n);
  }
  cache->store_raw(key_number(1), payload_number(1, 500));
  auto mapped = cache->find_mapped(key_number(1));
  right = right && (!mapped || std::ranges::equal(mapped->bytes, payload_number(1, 500)));
  std::error_code ignored;
  std::filesystem::resize_file(folder / entry_file_name(key_number(5).hash(), entry_kind::kernel), 200, ignored);
  check_found(cache->find(key_number(5)), 5);
  cache->store(key_number(5), payload_number(5, 900));
  check_found(cache->find(key_number(5)), 5);
  return right;
}

struct fault {
  const char* name;
  int code;
};
constexpr fault faults[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EACCES", EACCES}, {"EROFS", EROFS}, {"EMFILE", EMFILE}, {"EINTR", EINTR}, {"ENOENT", ENOENT}, {"EEXIST", EEXIST}, {"ESTALE", ESTALE}};

std::size_t count_temporaries(const std::filesystem::path& folder) {
  std::size_t count = 0;
  std::error_code none;
  for (const auto& e : std::filesystem::directory_iterator(folder, none)) count += e.path().filename().string().starts_with(temporary_prefix);
  return count;
}

}  // namespace

TEST(cache_faults, every_call_with_every_error) {
  int total = 0, stored_after_interruption = 0;
  for (const fault& f : faults) {
    int calls = 1;
    for (int n = 1; n <= calls; ++n, ++total) {
      scratch_folder scratch;
      std::filesystem::create_directory(scratch / "layer");
      std::filesystem::permissions(scratch / "layer", std::filesystem::perms::owner_all);
      faulty_file_system files;
      files.fail_at = n;
      files.code = f.code;
      std::size_t before = open_descriptors();
      ASSERT_TRUE(run_through(files, scratch / "c")) << f.name << " at call " << n;
      ASSERT_EQ(open_descriptors(), before) << f.name << " at call " << n << " leaks a descriptor";
      ASSERT_LE(count_temporaries(scratch / "c"), 0u) << f.name << " at call " << n;
      calls = std::max(calls, files.calls.load());
      // A healthy process afterwards finds what is right, or nothing.
      warnings said;
      auto cache = kernel_cache::open({.folder = scratch / "c", .warn = said.sink()});
      ASSERT_TRUE(cache->writable()) << f.name << " at call " << n;
      bool last = false;
      for (int k = 0; k < 6; ++k) {
        auto found = cache->find(key_number(k));
        ASSERT_TRUE(!found || *found == payload_number(k, 900)) << f.name << " at call " << n;
        last = found.has_value();
      }
      ASSERT_EQ(cache->counters().errors, 0u) << f.name << " at call " << n << " left a damaged entry: " << (said.lines.empty() ? "" : said.lines[0]);
      if (f.code == EINTR) stored_after_interruption += last;
    }
    EXPECT_GT(calls, 80) << "the scenario shrank";
  }
  EXPECT_GT(total, 700);
  EXPECT_GT(stored_after_interruption, 70) << "interruptions are retried";
}

TEST(cache_faults, interruptions_cost_nothing_while_writing) {
  scratch_folder scratch;
  auto cache = kernel_cache::open({scratch / "c"});
  cache->store(key_number(0), payload_number(0));
  // The first store of a cache: create, write, write.., synchronize, close, rename.
  for (int n = 1; n <= 6; ++n) {
    faulty_file_system files;
    files.code = EINTR;
    std::filesystem::path folder = scratch / "c";
    files.fail_at = n;
    auto failure = write_file(files, folder, "x", payload_number(1), payload_number(2));
    EXPECT_FALSE(failure) << n << ": " << failure.text();
    auto bytes = read_bytes(folder / "x");
    EXPECT_EQ(bytes.size(), 600u);
  }
}

TEST(cache_faults, short_reads_and_writes_are_continued) {
  scratch_folder scratch;
  faulty_file_system files;
  files.short_transfers = true;
  auto cache = kernel_cache::open({.folder = scratch / "c", .files = &files});
  for (int n = 0; n < 5; ++n) {
    cache->store(key_number(n), payload_number(n, 50'000));
    cache->store_raw(key_number(n), payload_number(n, 50'000));
    EXPECT_EQ(cache->find(key_number(n)), payload_number(n, 50'000));
    EXPECT_TRUE(std::ranges::equal(cache->find_mapped(key_number(n))->bytes, payload_number(n, 50'000)));
  }
  EXPECT_EQ(cache->counters().errors, 0u);
}

TEST(cache_faults, maintenance_fails_with_an_error_or_not_at_all) {
  scratch_folder scratch;
  {
    auto cache = kernel_cache::open({scratch / "c"});
    for (int n = 0; n < 4; ++n) cache->store(key_number(n), payload_number(n, 900));
  }
  int failed = 0, passed = 0;
  for (const fault& f : faults) {
    for (int n = 1; n <= 60; ++n) {
      std::filesystem::remove_all(scratch / "out");
      faulty_file_system files;
      files.fail_at = n;
      files.code = f.code;
      std::size_t before = open_descriptors();
      try {
        cache_stats(scratch / "c", files);
        verify_cache(scratch / "c", false, files);
        copy_cache(scratch / "c", scratch / "out", nullptr, files);
        explain_cache({scratch / "c"}, key_number(9), entry_kind::kernel, files);
        ++passed;
      } catch (const error& e) {
        EXPECT_TRUE(e.kind() == error_kind::io || e.kind() == error_kind::missing_file) << e.what();
        ++failed;
      }
      ASSERT_EQ(open_descriptors(), before) << f.name << " at call " << n;
      ASSERT_EQ(count_temporaries(scratch / "out"), 0u) << f.name << " at call " << n;
      if (std::filesystem::exists(scratch / "out")) { ASSERT_TRUE(verify_cache(scratch / "out", false).damaged.empty()); }
    }
  }
  EXPECT_GT(failed, 20);
  EXPECT_GT(passed, 100);
}
