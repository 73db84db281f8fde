// Damaged bytecode: every truncation, and every byte with each of its bits flipped. Each must give a typed error or a kernel that verifies.
// MLIR 22's reader is not built for hostile bytes: it trusts counts (of regions, values, attributes) and dereferences attributes of a kind it did
// not expect, so a few flips in a thousand make it crash or loop. That can only happen to who calls portable_kernel::parse with bytes of
// their own: a payload in a file or a cache is checked against its BLAKE3 hash first. The attempts run in child processes, where a crash is counted.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "ir/error.hpp"
#include "mlir_bridge/kernel_bytecode.hpp"
#include "mlir_bridge/portable_kernel.hpp"
#include "test/mlir_bridge/kernel/sample_clusters.hpp"

namespace kiln::test {
namespace {

struct tally {
  int refused = 0, accepted = 0, untyped = 0;
  std::vector<std::size_t> killed;  // crashed, or used a second of processor time where a good kernel takes a millisecond
};

char outcome_of(const compiler_context& context, const std::vector<std::byte>& bytes) {
  try {
    portable_kernel kernel = portable_kernel::parse(context, bytes);
    return kernel.print().empty() ? 'u' : 'a';
  } catch (const error& e) {
    bool typed = e.kind() == error_kind::corrupted || e.kind() == error_kind::newer_version || e.kind() == error_kind::unsupported;
    return typed && !std::string(e.what()).empty() ? 'r' : 'u';
  } catch (...) {
    return 'u';
  }
}

// Runs attempts [first, count) until one kills the child; one character per finished attempt goes through the pipe.
std::string attempt_in_child(std::size_t first, std::size_t count, const std::function<std::vector<std::byte>(std::size_t)>& damaged) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  pid_t child = fork();
  if (child == 0) {
    rlimit memory{std::size_t{8} << 30, std::size_t{8} << 30}, core{0, 0};
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    for (int s : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE}) std::signal(s, SIG_DFL);
    compiler_context context;
    for (std::size_t i = first; i < count; ++i) {
      itimerval second{{0, 0}, {1, 0}};
      setitimer(ITIMER_PROF, &second, nullptr);
      char result = outcome_of(context, damaged(i));
      if (write(ends[1], &result, 1) != 1) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string results;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) results.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status;
  waitpid(child, &status, 0);
  return results;
}

tally attempt_all(std::size_t count, const std::function<std::vector<std::byte>(std::size_t)>& damaged) {
  tally result;
  for (std::size_t next = 0; next < count;) {
    std::string outcomes = attempt_in_child(next, count, damaged);
    for (char c : outcomes) ++(c == 'r' ? result.refused : c == 'a' ? result.accepted : result.untyped);
    next += outcomes.size();
    if (next < count) result.killed.push_back(next++);
  }
  return result;
}

std::string describe(const tally& t) {
  std::string text = std::to_string(t.refused) + " refused, " + std::to_string(t.accepted) + " accepted, " + std::to_string(t.untyped) + " untyped, " +
                     std::to_string(t.killed.size()) + " crashed or looped inside MLIR:";
  for (std::size_t i = 0; i < t.killed.size() && i < 200; ++i) text += " " + std::to_string(t.killed[i]);
  return text;
}

TEST(hostile_bytecode, every_truncation) {
  auto bytes = write_kernel(*symbolic_dot_cluster(), "sample");
  tally t = attempt_all(bytes.size(), [&](std::size_t size) { return std::vector<std::byte>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)); });
  std::cout << describe(t) << "\n";
  EXPECT_EQ(t.accepted + t.untyped, 0);
  EXPECT_TRUE(t.killed.empty());
}

TEST(hostile_bytecode, every_flipped_bit) {
  auto bytes = write_kernel(*symbolic_dot_cluster(), "sample");
  tally t = attempt_all(bytes.size() * 8, [&](std::size_t i) {
    auto copy = bytes;
    copy[i / 8] ^= std::byte(1 << i % 8);
    return copy;
  });
  std::cout << describe(t) << "\n";
  EXPECT_EQ(t.untyped, 0);
  EXPECT_GT(t.refused, t.accepted);
  EXPECT_LT(t.killed.size(), bytes.size() * 8 / 100) << "our own verifiers crash, or MLIR became worse";
}

}  // namespace
}  // namespace kiln::test
