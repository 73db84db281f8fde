// Damaged bytecode: every truncation, and every byte with each of its bits flipped. Each must give a typed error or a kernel that verifies.
// MLIR 22's reader is not built for hostile bytes: it trusts counts (of operation names, regions, values, attributes), writes past a vector or
// dereferences an attribute of a kind it did not expect, so a few flips in a thousand make it crash or loop. That can only happen to who
// calls portable_kernel::parse with bytes of their own: a payload in a file or a cache is checked against its BLAKE3 hash first. Each attempt
// has a process of its own, where a crash is counted, not suffered.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

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

enum outcome : int { refused = 10, accepted, untyped };

outcome attempt(const std::vector<std::byte>& bytes) {
  try {
    compiler_context context;
    portable_kernel kernel = portable_kernel::parse(context, bytes);
    return kernel.print().empty() ? untyped : accepted;
  } catch (const error& e) {
    bool typed = e.kind() == error_kind::corrupted || e.kind() == error_kind::newer_version || e.kind() == error_kind::unsupported;
    return typed && !std::string(e.what()).empty() ? refused : untyped;
  } catch (...) {
    return untyped;
  }
}

// The exit status of a process that makes one attempt.
int attempt_in_child(const std::vector<std::byte>& bytes) {
  pid_t child = fork();
  if (child == 0) {
    rlimit memory{std::size_t{8} << 30, std::size_t{8} << 30}, core{0, 0};
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    itimerval second{{0, 0}, {1, 0}};
    setitimer(ITIMER_PROF, &second, nullptr);
    _exit(attempt(bytes));
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) throw std::runtime_error("no child process");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

tally attempt_all(std::size_t count, const std::function<std::vector<std::byte>(std::size_t)>& damaged) {
  tally result;
  for (std::size_t i = 0; i < count; ++i) {
    int status = attempt_in_child(damaged(i));
    if (status == refused) ++result.refused;
    else if (status == accepted) ++result.accepted;
    else if (status == untyped) ++result.untyped;
    else result.killed.push_back(i);
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
