// Damaged payloads: every truncation, and every byte with each of its bits flipped. Each gives a typed error or a
// kernel, and this process survives. MLIR 22's reader is not hardened against malicious bytes: it trusts counts (of
// operation names, regions, values, attributes), writes past a vector or dereferences an attribute of an unexpected
// kind, so a few flips in a thousand would crash it or make it loop, in the worker process. The check in front of it
// (mlir_bridge/kernel/bytecode_check.hpp) refuses all of these, so no worker ends.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>

#include "ir/error.hpp"
#include "jit/compile_worker.hpp"
#include "jit/targets.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "test/mlir_bridge/kernel/sample_fusions.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

struct tally {
  int refused = 0, accepted = 0, crashed = 0;
};

class hostile_bytecode : public ::testing::Test {
 protected:
  void attempt(const std::vector<std::byte>& payload) {
    try {
      EXPECT_FALSE(text_in_worker(workers_, {payload, {}, {}, targets().front()}, "mlir", {.reading = 200ms}).empty());
      ++tally_.accepted;
    } catch (const error& e) {
      EXPECT_TRUE(e.kind() == error_kind::corrupted || e.kind() == error_kind::newer_version ||
                  e.kind() == error_kind::unsupported)
          << name(e.kind()) << ": " << e.what();
      EXPECT_FALSE(std::string(e.what()).empty());
      ++(std::string(e.what()).find("the compiler's process") == std::string::npos ? tally_.refused : tally_.crashed);
    }
  }

  void TearDown() override {
    std::cout << tally_.refused << " refused, " << tally_.accepted << " accepted, " << tally_.crashed
              << " ended their worker\n";
    EXPECT_EQ(text_in_worker(workers_, {bytes_, {}, {}, targets().front()}, "mlir"),
              // The pool works again.
              print_kernel(bytes_));
    EXPECT_EQ(tally_.crashed, 0);
  }

  std::vector<std::byte> bytes_ = write_kernel(*symbolic_dot_fusion(), "sample");
  worker_pool workers_{{.arguments = {KILN_TEST_WORKER, compile_worker_argument}}};
  tally tally_;
};

TEST_F(hostile_bytecode, every_truncation) {
  for (std::size_t size = 0; size < bytes_.size(); ++size)
    attempt({bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size)});
  EXPECT_EQ(tally_.accepted, 0);
}

TEST_F(hostile_bytecode, every_flipped_bit) {
  for (std::size_t i = 0; i < bytes_.size() * 8; ++i) {
    auto copy = bytes_;
    copy[i / 8] ^= std::byte(1 << i % 8);
    attempt(copy);
  }
  EXPECT_GT(tally_.refused, tally_.accepted);
}

}  // namespace
}  // namespace kiln::test
