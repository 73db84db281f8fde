// Every file system call of the cache fails once, with every error. The run must continue, and no wrong entry may be
// found.
#include <gtest/gtest.h>

#include "fixtures.hpp"
#include "ir/error.hpp"
#include "jit/cache/maintenance.hpp"
#include "jit/cache/transfer.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

constexpr int kernels = 5;

// All cache operations of a run: open, miss, claim, look again, store, hit, evict, map, repair, in a folder with a
// local and a remote layer behind it. Returns false if something wrong was found. Entries that are not found are made
// by the run, so it always has the right kernel.
bool run_through(file_system& files, const std::filesystem::path& folder) {
  bool right = true;
  auto check_found = [&](const auto& found, int n) { right = right && (!found || *found == payload_number(n, 900)); };
  auto remote = std::make_shared<memory_layer>();
  remote->put(entry_file_name(key_number(0).hash(), entry_kind::kernel),
              encode_kernel_entry(key_number(0).fields(), payload_number(0, 900)));
  auto cache = kernel_cache::open({.folder = folder,
                                   .read_only_layers = {folder.parent_path() / "layer"},
                                   .max_bytes = 4500,
                                   .files = &files,
                                   .warn = [](const std::string&) {},
                                   .remote = remote,
                                   .consent = {.allow_unsigned = true}});
  for (int n = 0; n < kernels; ++n) {
    auto found = cache->find(key_number(n));
    check_found(found, n);
    if (n > 0) {
      work_claim claim = cache->claim(key_number(n));
      right = right && !claim.busy();
      check_found(cache->find_made(key_number(n)), n);
      cache->store(key_number(n), payload_number(n, 900));
    }
    check_found(cache->find(key_number(n)), n);
  }
  cache->store_raw(key_number(1), payload_number(1, 500));
  auto mapped = cache->find_mapped(key_number(1));
  right = right && (!mapped || std::ranges::equal(mapped->bytes, payload_number(1, 500)));
  std::error_code ignored;
  std::filesystem::resize_file(folder / entry_file_name(key_number(4).hash(), entry_kind::kernel), 200, ignored);
  check_found(cache->find(key_number(4)), 4);
  cache->store(key_number(4), payload_number(4, 900));
  check_found(cache->find(key_number(4)), 4);
  return right;
}

struct fault {
  const char* name;
  int code;
};
constexpr fault faults[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},         {"EACCES", EACCES}, {"EROFS", EROFS},
                            {"EMFILE", EMFILE}, {"EINTR", EINTR},     {"ENOENT", ENOENT}, {"EEXIST", EEXIST},
                            {"ESTALE", ESTALE}, {"short transfer", 0}};

std::size_t count_named(const std::filesystem::path& folder, std::string_view prefix) {
  std::size_t count = 0;
  std::error_code none;
  for (const auto& e : std::filesystem::directory_iterator(folder, none))
    count += e.path().filename().string().starts_with(prefix);
  return count;
}
std::size_t count_temporaries(const std::filesystem::path& folder) {
  return count_named(folder, temporary_prefix) + count_named(folder, lock_prefix);
}

}  // namespace

// The n-th call fails, for every n and every error; then the n-th and all later calls.
TEST(cache_faults, every_call_with_every_error) {
  int total = 0, stored_after_interruption = 0;
  std::size_t swept = 0;
  for (const fault& f : faults) {
    int calls = 1;
    for (bool and_all_later : {false, true})
      for (int n = 1; n <= calls; ++n, ++total) {
        SCOPED_TRACE(std::string(f.name) + " at call " + std::to_string(n) +
                     (and_all_later ? " and all later ones" : ""));
        scratch_folder scratch;
        std::filesystem::create_directory(scratch / "layer");
        std::filesystem::permissions(scratch / "layer", std::filesystem::perms::owner_all);
        faulty_file_system files;
        files.fail_at = n;
        files.code = f.code;
        files.and_all_later = and_all_later;
        std::size_t before = open_descriptors();
        ASSERT_NO_THROW(ASSERT_TRUE(run_through(files, scratch / "c")));
        ASSERT_EQ(open_descriptors(), before) << "leaks a descriptor";
        if (!and_all_later) {
          ASSERT_EQ(count_named(scratch / "c", temporary_prefix), 0u);
          calls = std::max(calls, files.calls.load());
        }
        // Afterwards a process without failures finds correct entries or none, makes the missing ones, and removes old
        // files.
        warnings said;
        faulty_file_system later;
        later.pretended_now = posix_file_system().now() + std::int64_t{2} * 3600 * 1'000'000'000;
        std::size_t left = count_temporaries(scratch / "c");
        auto cache = kernel_cache::open({.folder = scratch / "c", .files = &later, .warn = said.sink()});
        ASSERT_TRUE(cache->writable());
        ASSERT_EQ(count_temporaries(scratch / "c"), 0u);
        swept += left;
        bool last = false;
        for (int k = 0; k < kernels; ++k) {
          auto found = cache->find(key_number(k));
          ASSERT_TRUE(!found || *found == payload_number(k, 900));
          last = found.has_value();
          if (!found) cache->store(key_number(k), payload_number(k, 900));
          ASSERT_EQ(cache->find(key_number(k)), payload_number(k, 900));
        }
        // Only the entry that the scenario truncates may be corrupt, if it could not be repaired.
        ASSERT_LE(cache->counters().errors, 1u) << (said.lines.empty() ? "" : said.lines[0]);
        if (f.code == EINTR && !and_all_later) stored_after_interruption += last;
      }
    EXPECT_GT(calls, 100) << "the scenario shrank";
  }
  EXPECT_GT(total, 1000);
  EXPECT_GT(stored_after_interruption, 90) << "interruptions are retried";
  std::printf("%d runs with a failing call, %zu temporaries and locks swept\n", total, swept);
}

TEST(cache_faults, interruptions_cost_nothing_while_writing) {
  scratch_folder scratch;
  auto cache = kernel_cache::open({scratch / "c"});
  cache->store(key_number(0), payload_number(0));
  // The calls of the first store of a cache: create, write, write.., synchronize, close, rename.
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

// Kernels are synchronized before they are renamed, prepared weights are not: a loss of power may leave zeros in them.
TEST(cache_faults, prepared_weights_that_lost_their_content_are_stored_again) {
  scratch_folder scratch;
  faulty_file_system files;
  warnings said;
  auto cache = kernel_cache::open({.folder = scratch / "c", .files = &files, .warn = said.sink()});
  cache->store(key_number(1), payload_number(1));
  EXPECT_EQ(files.synchronized, 1);
  cache->store_raw(key_number(1), payload_number(1, 50'000));
  EXPECT_EQ(files.synchronized, 1);
  const auto file = scratch / "c" / entry_file_name(key_number(1).hash(), entry_kind::prepared);
  const std::vector<std::byte> whole = read_bytes(file);
  for (std::size_t kept : {std::size_t{0}, std::size_t{4096}, std::size_t{20'000}}) {
    std::vector<std::byte> bytes = whole;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(kept), bytes.end(), std::byte{0});
    write_bytes(file, bytes);
    EXPECT_FALSE(cache->find_mapped(key_number(1))) << kept;
    cache->store_raw(key_number(1), payload_number(1, 50'000));
    EXPECT_EQ(read_bytes(file), whole);
  }
  write_bytes(file, {});
  EXPECT_FALSE(cache->find_mapped(key_number(1)));
  EXPECT_EQ(said.lines.size(), 1u);
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
        copy_cache(scratch / "c", scratch / "out", {}, files);
        explain_cache({scratch / "c"}, key_number(9), entry_kind::kernel, nullptr, nullptr, files);
        ++passed;
      } catch (const error& e) {
        EXPECT_TRUE(e.kind() == error_kind::io || e.kind() == error_kind::missing_file) << e.what();
        ++failed;
      }
      ASSERT_EQ(open_descriptors(), before) << f.name << " at call " << n;
      ASSERT_EQ(count_temporaries(scratch / "out"), 0u) << f.name << " at call " << n;
      if (std::filesystem::exists(scratch / "out")) {
        ASSERT_TRUE(verify_cache(scratch / "out", false).damaged.empty());
      }
    }
  }
  EXPECT_GT(failed, 20);
  EXPECT_GT(passed, 100);
}
