// Work in a forked copy of the process: its result, its crash, and copies that wait for ever.
#include "spirv/hip/forked_copy.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ir/error.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::spirv {
namespace {

// ThreadSanitizer has a thread in every process that works now and then, so no copy ever stops working.
#ifdef __SANITIZE_THREAD__
#define SKIP_IF_EVERY_COPY_WORKS() GTEST_SKIP() << "a thread of ThreadSanitizer works in every copy"
#else
#define SKIP_IF_EVERY_COPY_WORKS()
#endif

const copy_limits impatient{.stall = std::chrono::milliseconds(200)};

TEST(forked_copy, returns_the_result) {
  EXPECT_EQ(in_forked_copy("the work", [] { return std::string(200000, 'x'); }), std::string(200000, 'x'));
}

TEST(forked_copy, a_crash_is_an_error) {
  auto crash = []() -> std::string {
    std::raise(SIGSEGV);
    return "";
  };
  EXPECT_THROW(in_forked_copy("the work", crash), error);
}

// As a copy does that waits for a lock which another thread held at the fork.
TEST(forked_copy, a_copy_that_waits_for_ever_is_replaced) {
  SKIP_IF_EVERY_COPY_WORKS();
  testing::scratch_folder folder;
  const auto trace = folder / "trace";
  auto work = [&]() -> std::string {
    const bool first = !std::filesystem::exists(trace);
    std::ofstream(trace) << "began";
    if (first) pause();
    return "done";
  };
  EXPECT_EQ(in_forked_copy("the work", work, impatient), "done");
}

TEST(forked_copy, copies_that_all_wait_are_an_error) {
  SKIP_IF_EVERY_COPY_WORKS();
  auto wait = []() -> std::string {
    pause();
    return "";
  };
  try {
    in_forked_copy("the work", wait, impatient);
    FAIL() << "it returned";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    EXPECT_NE(std::string(e.what()).find("stopped working"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace kiln::spirv
