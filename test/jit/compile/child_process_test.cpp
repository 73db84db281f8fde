// Child processes that answer, crash, hang, write too much or do not exist. None of them may leave a process or
// descriptor behind.
#include <gmock/gmock.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "ir/error.hpp"
#include "jit/child_process.hpp"

namespace kiln::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> shell(const std::string& script, std::string_view input = "", const child_limits& limits = {}) {
  return run_in_child({"/bin/sh", "-c", script}, bytes_of(input), limits);
}

std::string message_of(const std::string& script, error_kind kind, const child_limits& limits = {},
                       std::string_view input = "") {
  try {
    shell(script, input, limits);
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown by " << script;
  return "";
}

std::ptrdiff_t open_descriptors() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

// At the end of every test there must be no child process and no more descriptors than at its start.
class child_process : public testing::Test {
 protected:
  void SetUp() override { before_ = open_descriptors(); }
  void TearDown() override {
    EXPECT_EQ(open_descriptors(), before_);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
    EXPECT_EQ(errno, ECHILD);
  }

 private:
  std::ptrdiff_t before_ = 0;
};

TEST_F(child_process, passes_bytes_in_and_out) {
  EXPECT_EQ(text_of(shell("cat", "hello")), "hello");
  EXPECT_EQ(text_of(shell("cat")), "");
  EXPECT_EQ(text_of(shell("cat >/dev/null; echo done", std::string(5000000, 'x'))), "done\n");
  std::string large(20000000, 'y');
  large += "end";
  EXPECT_EQ(text_of(shell("cat", large)), large);
}

TEST_F(child_process, a_child_that_does_not_read_is_no_harm) {
  EXPECT_EQ(text_of(shell("echo early", std::string(5000000, 'x'))), "early\n");
}

TEST_F(child_process, crashes_are_named_with_the_last_line) {
  std::string message =
      message_of("echo first >&2; echo 'LLVM ERROR: cannot select' >&2; kill -ABRT $$", error_kind::compile_failed);
  EXPECT_THAT(message, HasSubstr("signal 6"));
  EXPECT_THAT(message, HasSubstr("LLVM ERROR: cannot select"));
  EXPECT_THAT(message, testing::Not(HasSubstr("first")));
  EXPECT_THAT(message_of("kill -SEGV $$", error_kind::compile_failed), HasSubstr("signal 11"));
  EXPECT_THAT(message_of("echo partial; exit 3", error_kind::compile_failed), HasSubstr("status 3"));
}

TEST_F(child_process, hanging_children_are_stopped) {
  for (const char* script : {"sleep 100", "exec sleep 100", "while :; do :; done", "exec >&- 2>&-; sleep 100",
                             "trap '' TERM; sleep 100 & wait"}) {
    auto begin = std::chrono::steady_clock::now();
    message_of(script, error_kind::timed_out, {.time = 200ms}, "some input");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << script;
  }
}

TEST_F(child_process, too_much_output_is_refused) {
  EXPECT_THAT(message_of("yes", error_kind::compile_failed, {.time = 20s, .output_bytes = 1000000}),
              HasSubstr("1000000"));
  // Standard error is only kept in part.
  EXPECT_THAT(message_of("yes lots | head -c 30000000 >&2; echo last >&2; exit 1", error_kind::compile_failed),
              testing::EndsWith(": last"));
}

TEST_F(child_process, memory_is_limited) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more address space than any limit";
#endif
  message_of("read line; head -c 400000000 /dev/zero | tail -c 400000000 | wc -c | grep -q 400000000 || exit 9",
             error_kind::compile_failed, {.memory_bytes = 100 << 20}, "go\n");
}

TEST_F(child_process, what_cannot_be_started_is_an_io_error) {
  try {
    run_in_child({"/nonexistent/worker"}, {});
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::io);
    EXPECT_THAT(e.what(), HasSubstr("/nonexistent/worker"));
  }
}

TEST_F(child_process, inherits_no_descriptors_and_no_blocked_signals) {
  // Without FD_CLOEXEC.
  int extra = dup(0);
  EXPECT_EQ(text_of(shell("ls /proc/self/fd | wc -l")), text_of(shell("exec 3>&-; ls /proc/self/fd | wc -l")));
  close(extra);
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  std::string mask = text_of(shell("grep SigBlk /proc/self/status"));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  EXPECT_THAT(mask, HasSubstr("0000000000000000"));
}

TEST_F(child_process, several_at_once) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 10; ++i) {
        if (t % 2) EXPECT_EQ(text_of(shell("cat", std::to_string(t))), std::to_string(t));
        else message_of("kill -ABRT $$", error_kind::compile_failed);
      }
    });
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace kiln::test
