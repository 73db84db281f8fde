// The link of an AMDGPU object: its result, its silence, what it leaves behind, and what it refuses.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "ir/error.hpp"
#include "ir_kernels.hpp"
#include "mlir_bridge/back_ends/amd/code_object_info.hpp"
#include "mlir_bridge/back_ends/amd/link.hpp"

namespace kiln::test {
namespace {

using testing::HasSubstr;

std::string message_of(const auto& act, error_kind kind) {
  try {
    act();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

std::ptrdiff_t open_descriptors() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

const std::string calls_missing = R"(
declare void @missing_function()
define amdgpu_kernel void @k(ptr addrspace(1) %p) {
  call void @missing_function()
  ret void
}
)";

TEST(link, makes_a_shared_object_and_the_same_bytes_each_time) {
  auto object = compile_amdgpu(mfma_kernels, "gfx942");
  auto first = gpu::link_code_object(object), second = gpu::link_code_object(object);
  ASSERT_GT(first.size(), 64u);
  EXPECT_EQ(static_cast<int>(first[16]), 3) << "e_type is not ET_DYN";
  EXPECT_EQ(static_cast<int>(first[8]), 4) << "code object version 6 has ABI version 4";
  EXPECT_EQ(first, second);
  EXPECT_EQ(gpu::read_code_object(first).size(), 2u);
}

TEST(link, undefined_symbols_are_named_and_later_links_work) {
  auto bad = compile_amdgpu(calls_missing, "gfx1100"), good = compile_amdgpu(wmma_kernels, "gfx1100");
  for (int i = 0; i < 3; ++i) {
    std::string message = message_of([&] { gpu::link_code_object(bad); }, error_kind::compile_failed);
    EXPECT_THAT(message, HasSubstr("undefined symbol: missing_function"));
    EXPECT_THAT(message, testing::Not(HasSubstr("/proc/self")));
    EXPECT_FALSE(gpu::link_code_object(good).empty());
  }
}

TEST(link, refuses_what_is_no_relocatable) {
  auto object = compile_amdgpu(mfma_kernels, "gfx942"), linked = gpu::link_code_object(object);
  message_of([&] { gpu::link_code_object({}); }, error_kind::compile_failed);
  message_of([&] { gpu::link_code_object(linked); }, error_kind::compile_failed);
  std::vector<std::byte> noise(4096, std::byte{0x5a});
  message_of([&] { gpu::link_code_object(noise); }, error_kind::compile_failed);
  message_of([&] { gpu::link_code_object(std::span(object).first(object.size() / 2)); }, error_kind::compile_failed);
}

// Whatever LLD makes of damage comes back as our error or as a code object, and the process lives. In a process of its
// own, since LLD may be unusable afterwards, which later links must then say.
void link_damaged_objects() {
  auto object = compile_amdgpu(wmma_kernels, "gfx1100");
  int refused = 0, unusable = 0;
  std::uint64_t table;  // e_shoff: one byte of each field of the section headers is changed
  std::memcpy(&table, object.data() + 40, 8);
  for (std::size_t at = table; at + 64 <= object.size(); at += 64)
    for (std::size_t field = 0; field < 64; field += 4)
      for (auto flip : {std::byte{0x01}, std::byte{0x41}, std::byte{0xff}}) {
        auto damaged = object;
        damaged[at + field] ^= flip;
        try {
          gpu::link_code_object(damaged);
        } catch (const error& e) {
          if (e.kind() != error_kind::compile_failed) std::exit(3);
          (std::string_view(e.what()).find("start a new process") != std::string_view::npos ? unusable : refused)++;
        }
      }
  std::exit(refused > 5 ? 0 : 4);
}

TEST(link, survives_damaged_objects) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(link_damaged_objects(), testing::ExitedWithCode(0), "");
}

TEST(link, prints_nothing_and_leaves_no_descriptor) {
  auto bad = compile_amdgpu(calls_missing, "gfx1100"), good = compile_amdgpu(wmma_kernels, "gfx1100");
  gpu::link_code_object(good);
  auto before = open_descriptors();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  gpu::link_code_object(good);
  EXPECT_THROW(gpu::link_code_object(bad), error);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(open_descriptors(), before);
}

TEST(link, threads_may_link_at_once) {
  auto one = compile_amdgpu(mfma_kernels, "gfx942"), other = compile_amdgpu(wmma_kernels, "gfx1100");
  auto wanted_one = gpu::link_code_object(one), wanted_other = gpu::link_code_object(other);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i)
        EXPECT_EQ(gpu::link_code_object(t % 2 ? one : other), t % 2 ? wanted_one : wanted_other);
    });
  for (std::thread& t : threads) t.join();
}

// More than a pipe holds.
TEST(link, large_objects_pass) {
  std::string ir = "@table = addrspace(4) constant [1000000 x i32] [i32 7";
  for (int i = 1; i < 1000000; ++i) ir += ",i32 7";
  auto linked = gpu::link_code_object(compile_amdgpu(ir + "]\n" + mfma_kernels, "gfx942"));
  EXPECT_GT(linked.size(), 4000000u);
}

}  // namespace
}  // namespace kiln::test
