// Worker processes that answer, crash, loop, write too much or do not exist. None of them may leave a process or
// descriptor behind.
#include "jit/worker_pool.hpp"

#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "ir/error.hpp"
#include "jit/process_deadline.hpp"
#include "jit/sandbox.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::ptrdiff_t open_descriptors() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

// At the end of every test there must be no child process and no more descriptors than at its start.
class worker_pool_test : public ::testing::Test {
 protected:
  void SetUp() override { before_ = open_descriptors(); }
  void TearDown() override {
    pool_.reset();
    EXPECT_EQ(open_descriptors(), before_);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
    EXPECT_EQ(errno, ECHILD);
  }

  // May be called by several threads.
  worker_pool& pool(worker_options options = {}) {
    std::lock_guard lock(making_);
    if (options.arguments.empty()) options.arguments = {KILN_TEST_WORKER};
    if (!pool_) pool_ = std::make_unique<worker_pool>(std::move(options));
    return *pool_;
  }

  std::string ask(const std::string& request, const worker_limits& limits = {}) {
    auto bytes = pool().ask(std::as_bytes(std::span(request)), limits);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string message_of(const std::string& request, error_kind kind, const worker_limits& limits = {}) {
    try {
      std::string answer = ask(request, limits);
      ADD_FAILURE() << "nothing was thrown, the answer is " << answer;
    } catch (const error& e) {
      EXPECT_EQ(name(e.kind()), name(kind)) << e.what();
      return e.what();
    }
    return "";
  }

  std::mutex making_;
  std::unique_ptr<worker_pool> pool_;

 private:
  std::ptrdiff_t before_ = 0;
};

TEST_F(worker_pool_test, requests_and_answers_of_any_size) {
  EXPECT_EQ(ask("echo hello"), "hello");
  EXPECT_EQ(ask("echo "), "");
  const std::string large(20000000, 'y');
  // Sanitizers make copying 20 MB slow.
  EXPECT_EQ(ask("echo " + large, {.reading = 5s}), large);
  EXPECT_EQ(ask("late echo hello"), "hello");
}

TEST_F(worker_pool_test, a_host_may_be_a_fork_of_this_process) {
  auto echo = [] {
    return worker_function([](std::span<const std::byte> request, const std::function<void()>& accepted) {
      accepted();
      return std::vector<std::byte>(request.begin(), request.end());
    });
  };
  std::optional<forked_host> forked = fork_worker_host(echo);
  ASSERT_TRUE(forked);
  const pid_t host = forked->process;
  worker_options options;
  options.forked = std::make_shared<forked_host>(std::move(*forked));
  pool(options).start();
  EXPECT_EQ(ask("host"), "host");  // the executable's host would answer with a number
  // When it has ended, the executable takes its place.
  kill(host, SIGKILL);
  std::string answer = "host";
  for (int i = 0; i < 500 && answer == "host"; ++i) try {
      std::this_thread::sleep_for(10ms);
      answer = ask("host");
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), error_kind::io);
    }
  EXPECT_THAT(answer, ::testing::MatchesRegex("[0-9]+"));
}

TEST_F(worker_pool_test, a_forked_host_that_nobody_takes_ends_with_its_descriptor) {
  std::optional<forked_host> forked = fork_worker_host([] { return worker_function(); });
  ASSERT_TRUE(forked);
  const pid_t host = forked->process;
  forked.reset();
  int status = -1;
  EXPECT_EQ(waitpid(host, &status, 0), host);
  EXPECT_EQ(status, 0);
}

TEST_F(worker_pool_test, a_worker_stays) {
  const std::string first = ask("pid");
  EXPECT_EQ(ask("pid"), first);
  EXPECT_EQ(ask("served"), "3");
}

TEST_F(worker_pool_test, a_crash_is_an_error_and_the_pool_goes_on) {
  EXPECT_THAT(message_of("crash", error_kind::corrupted), HasSubstr("signal 11"));
  EXPECT_THAT(message_of("late crash", error_kind::unsupported), HasSubstr("signal 11"));
  EXPECT_THAT(message_of("abort", error_kind::corrupted), HasSubstr("LLVM ERROR: Cannot select"));
  EXPECT_THAT(message_of("exit", error_kind::corrupted), HasSubstr("status 7"));
  EXPECT_EQ(ask("echo still here"), "still here");
}

TEST_F(worker_pool_test, what_never_ends_is_ended) {
  EXPECT_THAT(message_of("loop", error_kind::corrupted, {.reading = 200ms}), HasSubstr("200 ms"));
  EXPECT_THAT(message_of("late loop", error_kind::timed_out, {.time = 300ms}), HasSubstr("300 ms"));
  message_of("loop", error_kind::timed_out, {.time = 50ms});
  EXPECT_THAT(message_of("sleep 10000", error_kind::timed_out, {.time = 300ms, .reading = 100ms}),
              // It did not read, it only waited for its turn.
              HasSubstr("300 ms"));
  EXPECT_EQ(ask("echo still here"), "still here");
}

// A worker that shares one processor with a thread of higher priority gets a sixth of it. What it waits for its turn
// does not count.
TEST_F(worker_pool_test, a_worker_that_gets_no_processor_is_waited_for) {
  if (!time_without_processor(getpid())) GTEST_SKIP() << "skipped: there is no /proc/PID/schedstat";
  std::jthread([&] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    int number = 0;
    while (!CPU_ISSET(number, &all)) ++number;
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    // The thread `busy` and the processes that this thread starts keep to one processor.
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    std::jthread busy([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {}
    });
    const int nice = std::min(19, getpriority(PRIO_PROCESS, 0) + 7);
    ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), nice), 0);
    EXPECT_NE(ask("late compute 0"), "");
    ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    const auto begin = std::chrono::steady_clock::now();
    std::string answer;
    try {
      answer = ask("late compute 150", {.time = 600ms});
    } catch (const error& e) {
      ASSERT_EQ(e.kind(), error_kind::timed_out) << e.what();
    }
    const auto took = std::chrono::steady_clock::now() - begin;
    if (answer.empty() && took >= process_deadline::patience * 600ms)
      GTEST_SKIP() << "skipped: other programs leave too little of the processor";
    EXPECT_NE(answer, "") << took / 1ms << " ms";
    EXPECT_GT(took, 600ms) << "the worker did not have to wait";
  }).join();
}

TEST_F(worker_pool_test, a_worker_that_an_earlier_request_damaged_is_not_held_against_the_next_one) {
  ask("poison");
  EXPECT_EQ(ask("served"), "1");
}

TEST_F(worker_pool_test, answers_are_bounded_and_verified) {
  pool({.answer_bytes = 1000});
  EXPECT_EQ(ask("large 1000").size(), 1000u);
  EXPECT_THAT(message_of("large 1001", error_kind::corrupted), HasSubstr("1000 bytes"));
  EXPECT_THAT(message_of("nonsense", error_kind::corrupted), HasSubstr("no sense"));
  EXPECT_THAT(message_of("twice", error_kind::unsupported), HasSubstr("no sense"));
}

TEST_F(worker_pool_test, memory_is_bounded) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "skipped: sanitizers need more address space than a limit would leave";
#endif
  pool({.memory_bytes = 100 << 20});
  EXPECT_EQ(ask("allocate 50000000"), "there was enough");
  EXPECT_EQ(ask("allocate 200000000"), "there was too little");
}

// A payload that has taken over a worker tries these; the sandbox must refuse each.
TEST_F(worker_pool_test, a_worker_is_confined) {
  const sandbox_state sandbox = available_sandbox();
  if (!sandbox.complete()) GTEST_SKIP() << "skipped: sandbox of compile workers: " << sandbox.describe();
  const kiln::testing::scratch_folder folder;
  const std::string there = (folder / "there").string(), new_file = (folder / "new").string();
  std::ofstream(there) << "secret";
  const std::string no_access = std::strerror(EACCES), no_call = std::strerror(EPERM);
  EXPECT_EQ(ask("try read " + there), no_access);
  EXPECT_EQ(ask("try read /proc/self/environ"), no_access);
  EXPECT_EQ(ask("try list /"), no_access);
  EXPECT_EQ(ask("try write " + there), no_access);
  EXPECT_EQ(ask("try write " + new_file), no_access);
  EXPECT_FALSE(std::filesystem::exists(new_file));
  for (const char* what : {"remove", "socket", "execute", "fork", "code", "signal", "memory"})
    EXPECT_EQ(ask(std::string("try ") + what + " " + there), no_call) << what;
  EXPECT_TRUE(std::filesystem::exists(there));
  // What LLD needs.
  EXPECT_EQ(ask("try thread"), "allowed");
  EXPECT_EQ(ask("try descriptor"), "allowed");
}

TEST_F(worker_pool_test, processor_time_has_a_limit_of_its_own) {
  const int limit = std::stoi(ask("processor", {.time = 10s}));
  EXPECT_GE(limit, 20);
  EXPECT_LE(limit, 25);
  EXPECT_LE(std::stoi(ask("processor", {.time = 5s})), limit) << "of each request";
}

TEST_F(worker_pool_test, callers_at_once_have_workers_of_their_own) {
  std::vector<std::string> answers(4);
  {
    std::vector<std::jthread> callers;
    for (std::string& a : answers) callers.emplace_back([&] { a = ask("sleep 300"); });
  }
  EXPECT_EQ(std::set(answers.begin(), answers.end()).size(), 4u);
}

TEST_F(worker_pool_test, workers_are_renewed) {
  pool({.requests_per_worker = 1});
  const std::string first = ask("pid");
  EXPECT_NE(ask("pid"), first);
}

TEST_F(worker_pool_test, a_worker_is_as_nice_as_its_caller) {
  EXPECT_EQ(ask("nice"), std::to_string(getpriority(PRIO_PROCESS, 0)));
  std::jthread([&] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 15), 0);
    EXPECT_EQ(ask("nice"), "15");
  }).join();
}

TEST_F(worker_pool_test, a_host_that_was_killed_is_replaced) {
  kill(std::stoi(ask("host")), SIGKILL);
  for (int i = 0; i < 100; ++i) {
    try {
      EXPECT_EQ(ask("echo again"), "again");
      return;
    } catch (const error& e) {
      // The first request after the crash may be the one that detects it.
      EXPECT_EQ(e.kind(), error_kind::io) << e.what();
    }
  }
  FAIL() << "there is no new host";
}

TEST_F(worker_pool_test, an_executable_that_is_no_host_is_an_error) {
  testing::scratch_folder folder;
  const std::string path = (folder.path() / "host").string();
  pool({.arguments = {path}});
  // Must not throw.
  pool().start();
  EXPECT_THAT(message_of("pid", error_kind::io), HasSubstr(path));
  std::ofstream(path) << "#!/bin/sh\nexit 5\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  EXPECT_THAT(message_of("pid", error_kind::io), HasSubstr("--in-process"));
}

TEST_F(worker_pool_test, a_host_that_nobody_asked_anything_ends_too) { pool().start(); }

// A short command may end before the host that it forked has run at all.
TEST_F(worker_pool_test, a_fork_that_has_no_group_of_its_own_yet_ends_too) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    for (;;) pause();
  spawned_process{child};
}

TEST_F(worker_pool_test, a_forked_host_has_a_group_of_its_own_at_once) {
  const auto host = fork_worker_host([] { return worker_function(); });
  ASSERT_TRUE(host);
  EXPECT_EQ(getpgid(host->process), host->process);
  spawned_process{host->process};
}

}  // namespace
}  // namespace kiln::test
