#include "jit/cache/kernel_cache.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "fixtures.hpp"
#include "jit/cache/eviction.hpp"

using namespace kiln;
using namespace kiln::testing;
using ::testing::HasSubstr;

namespace {

std::size_t count_files(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

std::filesystem::path file_of(const std::filesystem::path& folder, int n) {
  return folder / entry_file_name(key_number(n).hash(), entry_kind::kernel);
}

class environment {
 public:
  environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~environment() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST(kernel_cache, keeps_what_is_stored) {
  scratch_folder scratch;
  auto cache = kernel_cache::open({scratch / "a/b/cache"});
  ASSERT_TRUE(cache->writable());
  struct stat status{};
  ASSERT_EQ(::stat((scratch / "a/b/cache").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_FALSE(cache->find(key_number(1)));
  cache->store(key_number(1), payload_number(1));
  EXPECT_EQ(cache->find(key_number(1)), payload_number(1));
  EXPECT_FALSE(cache->find(key_number(2)));
  EXPECT_EQ(kernel_cache::open({scratch / "a/b/cache"})->find(key_number(1)), payload_number(1))
      << "by the next process";
  cache->store(key_number(1), payload_number(7));
  EXPECT_EQ(cache->find(key_number(1)), payload_number(7));
  cache_counters c = cache->counters();
  EXPECT_EQ(c.hits, 2u);
  EXPECT_EQ(c.misses, 2u);
  EXPECT_EQ(c.stores, 2u);
  EXPECT_EQ(c.repaired + c.errors + c.evicted, 0u);
  ASSERT_EQ(::stat(file_of(scratch / "a/b/cache", 1).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(count_files(scratch / "a/b/cache"), 1u);
}

TEST(kernel_cache, maps_prepared_weights) {
  scratch_folder scratch;
  auto cache = kernel_cache::open({scratch / "cache"});
  auto weights = payload_number(3, 100'003);
  EXPECT_FALSE(cache->find_mapped(key_number(1)));
  cache->store_raw(key_number(1), weights);
  cache->store(key_number(1), payload_number(1));
  auto mapped = cache->find_mapped(key_number(1));
  ASSERT_TRUE(mapped);
  std::filesystem::remove_all(scratch / "cache");
  cache.reset();
  EXPECT_TRUE(std::ranges::equal(mapped->bytes, weights)) << "the mapping outlives the cache and the file";
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped->bytes.data()) % 64, 0u);
}

TEST(kernel_cache, layers_are_asked_in_order_and_never_written) {
  scratch_folder scratch;
  kernel_cache::open({scratch / "far"})->store(key_number(1), payload_number(10));
  kernel_cache::open({scratch / "far"})->store(key_number(2), payload_number(2));
  kernel_cache::open({scratch / "near"})->store(key_number(1), payload_number(1));
  write_bytes(file_of(scratch / "near", 2), payload_number(99));  // damaged: the next layer is asked
  warnings said;
  cache_options options{scratch / "own", {scratch / "near", scratch / "missing", scratch / "far"}};
  options.warn = said.sink();
  auto cache = kernel_cache::open(options);
  EXPECT_EQ(cache->find(key_number(1)), payload_number(1));
  EXPECT_EQ(cache->find(key_number(2)), payload_number(2));
  cache->store(key_number(3), payload_number(3));
  EXPECT_EQ(count_files(scratch / "near"), 2u);
  EXPECT_EQ(count_files(scratch / "far"), 2u);
  EXPECT_EQ(count_files(scratch / "own"), 1u);
  ASSERT_EQ(said.lines.size(), 2u);
  EXPECT_THAT(said.lines[0], HasSubstr((scratch / "missing").string()));
  EXPECT_THAT(said.lines[1], HasSubstr((scratch / "near").string()));
}

TEST(kernel_cache, damaged_entries_are_missed_and_repaired) {
  scratch_folder scratch;
  warnings said;
  auto cache = kernel_cache::open({.folder = scratch / "c", .warn = said.sink()});
  auto payload = payload_number(1, 40), weights = payload_number(2, 40);
  cache->store(key_number(1), payload);
  cache->store_raw(key_number(1), weights);
  auto file = file_of(scratch / "c", 1),
       raw_file = scratch / "c" / entry_file_name(key_number(1).hash(), entry_kind::prepared);
  const auto good = read_bytes(file), good_raw = read_bytes(raw_file);
  std::uint64_t damages = 0;
  auto damage = [&](const std::vector<std::byte>& bytes) {
    write_bytes(file, bytes);
    ASSERT_FALSE(cache->find(key_number(1))) << damages;
    EXPECT_FALSE(std::filesystem::exists(file));
    cache->store(key_number(1), payload);
    ASSERT_EQ(cache->find(key_number(1)), payload);
    ASSERT_EQ(cache->counters().repaired, ++damages);
  };
  for (std::size_t size = 0; size < good.size(); ++size)
    damage({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= std::byte(1u << (bit % 8));
    damage(bytes);
  }
  for (std::size_t at = 0; at < good_raw.size(); at += 7) {
    auto bytes = good_raw;
    bytes[at] ^= std::byte{0x40};
    write_bytes(raw_file, bytes);
    ASSERT_FALSE(cache->find_mapped(key_number(1))) << at;
    bytes.resize(at);
    write_bytes(raw_file, bytes);
    ASSERT_FALSE(cache->find_mapped(key_number(1))) << at;
    cache->store_raw(key_number(1), weights);
    ASSERT_TRUE(std::ranges::equal(cache->find_mapped(key_number(1))->bytes, weights));
  }
  EXPECT_EQ(said.lines.size(), 1u) << "one warning, however many entries";
}

// Entries of another version, compiler, driver or machine are neither used nor deleted.
// A file of 2^40 bytes takes no disk if it is sparse, and must not take gigabytes of memory either.
TEST(kernel_cache, a_file_that_is_longer_than_its_entry_is_not_read_to_its_end) {
  scratch_folder scratch;
  faulty_file_system files;
  warnings said;
  auto cache = kernel_cache::open({.folder = scratch / "c", .files = &files, .warn = said.sink()});
  const std::size_t large = 3 << 20;
  cache->store(key_number(1), payload_number(1, large));
  EXPECT_EQ(cache->find(key_number(1)), payload_number(1, large));
  files.bytes_read = 0;
  std::filesystem::resize_file(file_of(scratch / "c", 1), std::uintmax_t{1} << 40);
  EXPECT_FALSE(cache->find(key_number(1)));
  EXPECT_LT(files.bytes_read, 3 * large);
  files.bytes_read = 0;
  write_bytes(file_of(scratch / "c", 2), payload_number(2));
  std::filesystem::resize_file(file_of(scratch / "c", 2), std::uintmax_t{1} << 40);
  EXPECT_FALSE(cache->find(key_number(2)));
  EXPECT_LT(files.bytes_read, large);
}

TEST(kernel_cache, other_worlds_live_side_by_side) {
  scratch_folder scratch;
  std::vector<kernel_key> worlds(6, key_number(1));
  worlds[1].code = "2";
  worlds[2].llvm = "23.0.0";
  worlds[3].driver = "580.65";
  worlds[4].target = "aarch64 +neon";
  worlds[5].configuration["tile_m"] = 8;
  for (std::size_t w = 0; w < worlds.size(); ++w) {
    auto cache = kernel_cache::open({scratch / "c"});
    EXPECT_FALSE(cache->find(worlds[w])) << w;
    cache->store(worlds[w], payload_number(static_cast<int>(w)));
    for (std::size_t before = 0; before <= w; ++before)
      EXPECT_EQ(cache->find(worlds[before]), payload_number(static_cast<int>(before))) << w;
    EXPECT_EQ(cache->counters().errors, 0u);
  }
  // An entry of a later format is a miss; the kernel is compiled again and stored in the current format.
  auto bytes = read_bytes(file_of(scratch / "c", 1));
  bytes[8] = std::byte{2};
  write_bytes(file_of(scratch / "c", 1), bytes);
  warnings said;
  auto cache = kernel_cache::open({.folder = scratch / "c", .warn = said.sink()});
  EXPECT_FALSE(cache->find(key_number(1)));
  EXPECT_EQ(said.lines.size(), 1u);
  cache->store(key_number(1), payload_number(1));
  EXPECT_EQ(cache->find(key_number(1)), payload_number(1));
}

// Two processes store different bytes under one key. A reader gets one of the two entries, complete.
TEST(kernel_cache, writers_may_disagree) {
  scratch_folder scratch;
  std::vector<pid_t> children;
  for (int c = 0; c < 2; ++c) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto cache = kernel_cache::open({scratch / "c"});
      for (int n = 0; n < 200; ++n)
        cache->store(key_number(1), payload_number(c, 3000 + 1000 * static_cast<std::size_t>(c)));
      ::_exit(cache->counters().errors == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  int found = 0;
  for (pid_t child : children) {
    int status = -1;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      auto cache = kernel_cache::open({scratch / "c"});
      auto bytes = cache->find(key_number(1));
      found += bytes.has_value();
      ASSERT_TRUE(!bytes || *bytes == payload_number(0, 3000) || *bytes == payload_number(1, 4000));
      ASSERT_EQ(cache->counters().errors, 0u);
    }
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_GT(found, 0);
}

TEST(kernel_cache, garbage_in_the_folder_is_left_alone) {
  scratch_folder scratch;
  std::filesystem::create_directories(scratch / "c/folder");
  std::filesystem::permissions(scratch / "c", std::filesystem::perms::owner_all);
  write_bytes(scratch / "c/notes.txt", payload_number(1));
  write_bytes(scratch / "c/.kernel", payload_number(1));
  write_bytes(scratch / "c" / (std::string(64, 'g') + ".kernel"), payload_number(1, 100'000));
  std::filesystem::create_directory(file_of(scratch / "c", 1));
  std::filesystem::create_symlink("/etc/passwd", file_of(scratch / "c", 2));
  warnings said;
  auto cache = kernel_cache::open({.folder = scratch / "c", .max_bytes = 4000, .warn = said.sink()});
  EXPECT_FALSE(cache->find(key_number(1)));
  EXPECT_FALSE(cache->find(key_number(2))) << "links are not followed";
  // A folder is in the way.
  cache->store(key_number(1), payload_number(1));
  cache->store(key_number(2), payload_number(2));
  EXPECT_EQ(cache->find(key_number(2)), payload_number(2));
  for (int n = 3; n < 12; ++n) cache->store(key_number(n), payload_number(n, 900));
  EXPECT_GT(cache->counters().evicted, 0u);
  for (const char* name : {"notes.txt", ".kernel", "folder"})
    EXPECT_TRUE(std::filesystem::exists(scratch / "c" / name)) << name;
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
}

TEST(kernel_cache, refused_folders_leave_a_working_run) {
  scratch_folder scratch;
  auto refuse = [&](const std::filesystem::path& folder, const char* why, file_system* files = nullptr) {
    warnings said;
    auto cache = kernel_cache::open({.folder = folder, .files = files, .warn = said.sink()});
    EXPECT_FALSE(cache->writable()) << folder;
    cache->store(key_number(1), payload_number(1));
    EXPECT_FALSE(cache->find(key_number(1)));
    ASSERT_EQ(said.lines.size(), 1u) << folder;
    EXPECT_THAT(said.lines[0], HasSubstr(why));
    EXPECT_EQ(cache->counters().errors, 1u);
  };
  std::filesystem::create_directory(scratch / "open");
  ::chmod((scratch / "open").c_str(), 01777);
  refuse(scratch / "open", "writable by everybody");
  std::filesystem::create_symlink(scratch / "open", scratch / "link");
  refuse(scratch / "link", "writable by everybody");
  refuse(scratch / "link/", "writable by everybody");
  write_bytes(scratch / "file", {});
  refuse(scratch / "file", "not a folder");
  refuse(scratch / "file/below", "cannot be examined");
  refuse("/proc/kiln-cache", "cannot be created");
  std::filesystem::create_directory(scratch / "foreign");
  std::filesystem::permissions(scratch / "foreign", std::filesystem::perms::owner_all);
  faulty_file_system foreign;
  foreign.pretended_owner = ::geteuid() + 1;
  refuse(scratch / "foreign", "another user", &foreign);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((scratch / "foreign").c_str(), 12345, 12345), 0);
    refuse(scratch / "foreign", "another user");
    ASSERT_EQ(::lchown((scratch / "link").c_str(), 12345, 12345), 0);
    refuse(scratch / "link", "link that belongs to another user");
  }
  std::filesystem::create_directory(scratch / "group");
  ::chmod((scratch / "group").c_str(), 0770);
  refuse(scratch / "group", "writable by its group");
  std::filesystem::create_directories(scratch / "above/below/cache");
  ::chmod((scratch / "above/below/cache").c_str(), 0700);
  ::chmod((scratch / "above").c_str(), 0777);
  refuse(scratch / "above/below/cache", "which is writable by everybody");
  refuse(scratch / "above/below/made", "which is writable by everybody");
  ::chmod((scratch / "above").c_str(), 01777);
  EXPECT_TRUE(kernel_cache::open({scratch / "above/below/cache"})->writable()) << "sticky, as /tmp is";
  EXPECT_TRUE(kernel_cache::open({})->counters().errors == 0) << "no folder wanted is no problem";
  std::filesystem::create_directory(scratch / "good");
  std::filesystem::permissions(scratch / "good", std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(scratch / "good", scratch / "good_link");
  EXPECT_TRUE(kernel_cache::open({scratch / "good_link"})->writable());
}

TEST(kernel_cache, read_only_folder_still_answers) {
  scratch_folder scratch;
  kernel_cache::open({scratch / "c"})->store(key_number(1), payload_number(1));
  for (int code : {EROFS, EACCES, ENOSPC}) {
    faulty_file_system files;
    files.all_writing_fails = true;
    files.code = code;
    warnings said;
    auto cache = kernel_cache::open({.folder = scratch / "c", .files = &files, .warn = said.sink()});
    EXPECT_EQ(cache->find(key_number(1)), payload_number(1));
    cache->store(key_number(2), payload_number(2));
    cache->store(key_number(3), payload_number(3));
    EXPECT_FALSE(cache->find(key_number(2)));
    EXPECT_EQ(cache->counters().stores, 0u);
    EXPECT_EQ(cache->counters().errors, 2u);
    EXPECT_EQ(said.lines.size(), 1u);
  }
}

TEST(kernel_cache, full_disk_leaves_nothing_behind) {
  scratch_folder scratch;
  kernel_cache::open({scratch / "c"})->store(key_number(1), payload_number(1));
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{5000, 5000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    warnings said;
    auto cache = kernel_cache::open({.folder = scratch / "c", .warn = said.sink()});
    cache->store(key_number(2), payload_number(2, 50'000));
    cache->store_raw(key_number(2), payload_number(2, 50'000));
    bool right = cache->counters().stores == 0 && cache->counters().errors == 2 && said.lines.size() == 1 &&
                 cache->find(key_number(1)) == payload_number(1);
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(count_files(scratch / "c"), 1u);
}

TEST(kernel_cache, least_recently_used_goes_first) {
  scratch_folder scratch;
  auto cache = kernel_cache::open({.folder = scratch / "c", .max_bytes = 20'000});
  for (int n = 0; n < 10; ++n) cache->store(key_number(n), payload_number(n, 1000));  // about 1.4 kB each
  EXPECT_EQ(cache->counters().evicted, 0u);
  for (int n : {0, 3, 5}) EXPECT_TRUE(cache->find(key_number(n)));
  for (int n = 10; n < 17; ++n) cache->store(key_number(n), payload_number(n, 1000));
  EXPECT_GT(cache->counters().evicted, 1u);
  std::uint64_t bytes = 0;
  for (const auto& e : std::filesystem::directory_iterator(scratch / "c")) bytes += e.file_size();
  EXPECT_LE(bytes, 20'000u);
  for (int n : {0, 3, 5, 16}) EXPECT_TRUE(cache->find(key_number(n))) << n;
  for (int n : {1, 2}) EXPECT_FALSE(cache->find(key_number(n))) << n;
  warnings said;
  auto small = kernel_cache::open({.folder = scratch / "c", .max_bytes = 500, .warn = said.sink()});
  small->store(key_number(50), payload_number(50, 1000));
  EXPECT_EQ(said.lines.size(), 1u);
  EXPECT_TRUE(small->find(key_number(16))) << "what cannot fit evicts nothing";
}

TEST(kernel_cache, clock_may_go_back) {
  scratch_folder scratch;
  faulty_file_system files;
  constexpr std::int64_t day = std::int64_t{86'400} * 1'000'000'000;
  std::int64_t now = 20'000 * day;
  files.pretended_now = now;
  auto cache = kernel_cache::open({.folder = scratch / "c", .max_bytes = 10'000, .files = &files});
  for (int n = 0; n < 6; ++n) cache->store(key_number(n), payload_number(n, 1000));
  files.pretended_now = now - 4000 * day;
  for (int n = 1; n < 6; ++n) EXPECT_TRUE(cache->find(key_number(n)));
  cache = kernel_cache::open(
      {.folder = scratch / "c", .max_bytes = 10'000, .files = &files});  // another process, the clock still wrong
  for (int n = 6; n < 8; ++n) cache->store(key_number(n), payload_number(n, 1000));
  EXPECT_FALSE(cache->find(key_number(0)));
  for (int n : {5, 6, 7}) EXPECT_TRUE(cache->find(key_number(n))) << n;
  files.pretended_now = INT64_MAX;
  for (int n = 8; n < 30; ++n) cache->store(key_number(n), payload_number(n, 1000));
  EXPECT_TRUE(cache->find(key_number(29)));
}

TEST(kernel_cache, stale_temporaries_are_swept) {
  scratch_folder scratch;
  kernel_cache::open({scratch / "c"});
  for (const char* name : {".tmp-1-old", ".tmp-1-new", ".tmp-1-future"})
    write_bytes(scratch / "c" / name, payload_number(1));
  auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(scratch / "c/.tmp-1-old", now - std::chrono::hours(2));
  std::filesystem::last_write_time(scratch / "c/.tmp-1-future", now + std::chrono::hours(200));
  kernel_cache::open({scratch / "c"});
  EXPECT_FALSE(std::filesystem::exists(scratch / "c/.tmp-1-old"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "c/.tmp-1-future"));
  EXPECT_TRUE(std::filesystem::exists(scratch / "c/.tmp-1-new")) << "somebody may be writing it";
}

TEST(kernel_cache, many_threads_and_processes_at_once) {
  scratch_folder scratch;
  // All threads store and find the same sixteen keys; the bound keeps eviction busy.
  auto work = [&](int seed) {
    warnings said;
    auto cache = kernel_cache::open({.folder = scratch / "c", .max_bytes = 16'000, .warn = [](const std::string&) {}});
    std::atomic<int> wrong = 0;
    auto one = [&](int thread) {
      for (int round = 0; round < 60; ++round) {
        int n = (seed * 7 + thread * 5 + round * 3) % 16;
        auto found = cache->find(key_number(n));
        if (found && *found != payload_number(n, 1000)) ++wrong;
        if (!found) cache->store(key_number(n), payload_number(n, 1000));
        auto mapped = cache->find_mapped(key_number(n));
        if (mapped && !std::ranges::equal(mapped->bytes, payload_number(n, 700))) ++wrong;
        if (!mapped && n < 2) cache->store_raw(key_number(n), payload_number(n, 700));
      }
    };
    std::thread second(one, 1);
    one(0);
    second.join();
    // Another process may evict a file between our listing and our reading. This must be the only effect.
    return wrong == 0 && cache->counters().repaired == 0 && cache->counters().errors == 0;
  };
  std::vector<pid_t> children;
  for (int c = 0; c < 3; ++c) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(work(c) ? 0 : 1);
    children.push_back(child);
  }
  EXPECT_TRUE(work(3));
  for (pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (const auto& e : std::filesystem::directory_iterator(scratch / "c"))
    EXPECT_FALSE(e.path().filename().string().starts_with(temporary_prefix));
}

// Six processes each fill the folder with entries of their own. Together they stay within the bound plus a sixteenth
// for each process.
TEST(kernel_cache, many_processes_keep_the_bound_together) {
  scratch_folder scratch;
  constexpr std::uint64_t bound = 160'000;
  constexpr int processes = 6;
  kernel_cache::open({scratch / "c"});
  auto bytes_there = [&] { return total_bytes(list_entries(posix_file_system(), scratch / "c")); };
  std::vector<pid_t> children;
  for (int c = 0; c < processes; ++c) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto cache = kernel_cache::open({.folder = scratch / "c", .max_bytes = bound, .warn = [](const std::string&) {}});
      bool within = true;
      for (int n = 0; n < 150; ++n) {
        cache->store(key_number(c * 1000 + n), payload_number(n, 2500));
        within = within && bytes_there() <= bound + processes * (bound / 16 + 3000);
        if (n % 3 == 0) cache->find(key_number(c * 1000 + n / 2));
      }
      ::_exit(within && cache->counters().errors == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_GT(bytes_there(), bound / 2);
  auto cache = kernel_cache::open({.folder = scratch / "c", .max_bytes = bound});
  cache->store(key_number(9999), payload_number(1));
  EXPECT_LE(bytes_there(), bound);
}

TEST(kernel_cache, folder_resolution) {
  environment dir("KILN_CACHE_DIR", "/one"), xdg("XDG_CACHE_HOME", "/two"), home("HOME", "/three"),
      layers("KILN_CACHE_PATH", "/a::/b:");
  EXPECT_EQ(default_cache_options("/zero").folder, "/zero");
  EXPECT_EQ(default_cache_options().folder, "/one");
  EXPECT_EQ(default_cache_options().read_only_layers, (std::vector<std::filesystem::path>{"/a", "/b"}));
  EXPECT_EQ(default_cache_options().max_bytes, std::uint64_t{4} << 30);
  {
    environment none("KILN_CACHE_DIR", nullptr);
    EXPECT_EQ(default_cache_options().folder, "/two/kiln");
    environment relative("XDG_CACHE_HOME", "two");
    EXPECT_EQ(default_cache_options().folder, "/three/.cache/kiln");
    environment empty("HOME", "");
    EXPECT_EQ(default_cache_options().folder, "") << "never the working directory";
  }
}
