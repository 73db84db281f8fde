// Two processes need the same entry: one of them makes it, even if the other is killed. Without file locks, both make
// it.
#include "jit/cache/work_claim.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "fixtures.hpp"

using namespace kiln;
using namespace kiln::testing;

namespace {

std::size_t count_locks(const std::filesystem::path& folder) {
  std::size_t count = 0;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    count += e.path().filename().string().starts_with(lock_prefix);
  return count;
}

}  // namespace

TEST(work_claim, one_at_a_time) {
  scratch_folder scratch;
  auto cache = kernel_cache::open({scratch / "c"}), other = kernel_cache::open({scratch / "c"});
  work_claim claim = cache->claim(key_number(1));
  EXPECT_TRUE(claim.held() && !claim.busy());
  EXPECT_TRUE(other->claim(key_number(1)).busy());
  EXPECT_TRUE(cache->claim(key_number(1)).busy()) << "another thread of this process";
  EXPECT_TRUE(other->claim(key_number(2)).held()) << "one key does not stand for another";
  work_claim moved = std::move(claim);
  EXPECT_TRUE(other->claim(key_number(1)).busy());
  moved = work_claim();
  EXPECT_TRUE(other->claim(key_number(1)).held());
  EXPECT_EQ(count_locks(scratch / "c"), 0u);
}

TEST(work_claim, nothing_in_the_way_where_there_are_no_locks) {
  scratch_folder scratch;
  auto holder = kernel_cache::open({scratch / "c"});
  work_claim held = holder->claim(key_number(1));
  for (int code : {ENOLCK, ENOSYS, EOPNOTSUPP, EIO}) {
    faulty_file_system files;
    files.no_locks = true;
    files.code = code;
    auto cache = kernel_cache::open({.folder = scratch / "c", .files = &files});
    work_claim claim = cache->claim(key_number(1));
    EXPECT_FALSE(claim.busy() || claim.held()) << code;
    files.no_locks = false;
    files.all_writing_fails = true;
    claim = cache->claim(key_number(2));
    EXPECT_FALSE(claim.busy() || claim.held()) << "a folder that cannot be written";
    EXPECT_EQ(cache->counters().errors, 0u);
  }
  work_claim none = kernel_cache::open({})->claim(key_number(1));
  EXPECT_FALSE(none.busy() || none.held());
}

TEST(work_claim, every_failing_call_leaves_it_harmless) {
  scratch_folder scratch;
  for (int code : {ENOSPC, EIO, EACCES, EROFS, EMFILE, EINTR}) {
    int calls = 0;
    for (int n = 1; n <= std::max(calls, 2); ++n) {
      auto folder = scratch / ("c" + std::to_string(code) + "-" + std::to_string(n));
      std::filesystem::create_directory(folder);
      faulty_file_system files;
      files.fail_at = n;
      files.code = code;
      std::size_t before = open_descriptors();
      { EXPECT_FALSE(work_claim::take(files, folder, "key").busy()); }
      calls = std::max(calls, files.calls.load());
      EXPECT_EQ(open_descriptors(), before);
      EXPECT_TRUE(work_claim::take(posix_file_system(), folder, "key").held()) << "nobody holds it any longer";
      EXPECT_EQ(count_locks(folder), 0u);
    }
    EXPECT_GE(calls, 6);
  }
}

TEST(work_claim, goes_with_a_killed_holder) {
  scratch_folder scratch;
  auto cache = kernel_cache::open({scratch / "c"});
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    work_claim claim = kernel_cache::open({scratch / "c"})->claim(key_number(1));
    char state = claim.held() ? 'y' : 'n';
    if (::write(ready[1], &state, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char state = 0;
  ASSERT_EQ(::read(ready[0], &state, 1), 1);
  ASSERT_EQ(state, 'y');
  EXPECT_TRUE(cache->claim(key_number(1)).busy());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(count_locks(scratch / "c"), 1u) << "the file stays";
  EXPECT_TRUE(cache->claim(key_number(1)).held());
  EXPECT_EQ(count_locks(scratch / "c"), 0u);
}

// Many processes start with an empty cache and make twenty entries each, as compile_bytecode does. Every entry is made
// exactly once, even if one of the processes is killed while it works. A process that makes an entry writes one byte to
// a pipe.
TEST(work_claim, processes_that_start_together_make_each_entry_once) {
  scratch_folder scratch;
  int made[2];
  ASSERT_EQ(::pipe(made), 0);
  auto work = [&](int first) {
    auto cache = kernel_cache::open({scratch / "c"});
    for (int i = 0; i < 20; ++i) {
      // Half of the processes use the reverse order.
      int n = first > 0 ? i : 19 - i;
      if (cache->find(key_number(n))) continue;
      work_claim claim;
      for (claim = cache->claim(key_number(n)); claim.busy(); claim = cache->claim(key_number(n)))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (cache->find_made(key_number(n))) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      char what = static_cast<char>(n);
      if (::write(made[1], &what, 1) != 1) ::_exit(1);
      cache->store(key_number(n), payload_number(n));
    }
    cache_counters c = cache->counters();
    ::_exit(c.hits + c.misses == 20 && c.misses == c.stores ? 0 : 1);
  };
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) work(c % 2);
    children.push_back(child);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(children[0], SIGKILL);
  for (std::size_t c = 0; c < children.size(); ++c) {
    int status = -1;
    ::waitpid(children[c], &status, 0);
    if (c > 0) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
  }
  ::close(made[1]);
  std::vector<int> times(20);
  for (char what; ::read(made[0], &what, 1) == 1;) ++times[static_cast<std::size_t>(what)];
  ::close(made[0]);
  // Only the entry on which the killed process worked may have been started twice.
  EXPECT_EQ(std::ranges::count(times, 0), 0);
  EXPECT_LE(std::ranges::count_if(times, [](int t) { return t > 1; }), 1);
  auto cache = kernel_cache::open({scratch / "c"});
  for (int n = 0; n < 20; ++n) EXPECT_EQ(cache->find(key_number(n)), payload_number(n));
}
