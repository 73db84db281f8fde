// The check in front of MLIR's reader: it accepts what was ever written, and refuses what made that reader crash or
// loop.
#include "mlir_bridge/kernel/bytecode_check.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ir/error.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "test/mlir_bridge/kernel/sample_fusions.hpp"
#include "test/support/paths.hpp"

namespace kiln::test {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::vector<std::byte>> samples() {
  std::vector<std::vector<std::byte>> result;
  for (const auto& list : {operator_samples(), elementwise_samples()})
    for (const sample& s : list) result.push_back(write_kernel(*fusion_of(s), "sample"));
  result.push_back(write_kernel(*symbolic_dot_fusion(), "sample"));
  return result;
}

// What the check says; empty if it accepts the bytes.
std::string refusal(std::span<const std::byte> bytes) {
  try {
    check_kernel_bytecode(bytes);
    return "";
  } catch (const error& e) {
    EXPECT_NE(e.kind(), error_kind::internal) << e.what();
    return e.what();
  }
}

// MLIR's encoding of numbers and sections, for kernels that no writer writes.
std::string number(std::uint64_t n) {
  if (n < 128) return {static_cast<char>(n << 1 | 1)};
  std::string eight(1, '\0');
  for (int i = 0; i < 8; ++i) eight += static_cast<char>(n >> 8 * i);
  return eight;
}
std::string section(int kind, const std::string& bytes) {
  return static_cast<char>(kind) + number(bytes.size()) + bytes;
}
std::string string_table(const std::vector<std::string>& strings) {
  std::string sizes, data;
  for (const std::string& s : strings) {
    sizes.insert(0, number(s.size() + 1));
    data += s + '\0';
  }
  return number(strings.size()) + sizes + data;
}

struct parts {
  std::string strings = string_table({"builtin", "module", "kiln", "kernel", "return"});
  std::string dialects = number(2) + number(0) + number(2 << 1 | 1) + section(7, number(3)) + number(3) + number(0) +
                         number(1) + number(1 << 1 | 1) + number(1) + number(2) + number(3 << 1 | 1) +
                         number(4 << 1 | 1);
  // A location, an empty dictionary; f32, a tensor of 3.
  std::string sizes = number(2) + number(2) + number(0) + number(2) + number(1 << 1 | 1) + number(2 << 1 | 1) +
                      number(0) + number(2) + number(1 << 1 | 1) + number(4 << 1 | 1);
  std::string entries =
      number(15) + number(1) + number(0) + number(5) + number(13) + number(1) + number(3 << 1) + number(0);
  std::string in_kernel = number(2) + "\x04" + number(0) + number(1) + number(0);  // return %0
  std::string values = number(1), header = number(1 << 1 | 1) + number(1) + number(1 << 1) + std::string(1, '\0');
  std::string properties = number(0);

  std::string bytes() const {
    const std::string kernel_region = section(4, number(1) + values + header + in_kernel);
    const std::string kernel = number(1) + "\x10" + number(0) + number(1 << 1 | 1) + kernel_region;
    const std::string module_region = section(4, number(1) + number(0) + number(1 << 1) + kernel);
    const std::string module = number(0) + "\x10" + number(0) + number(1 << 1 | 1) + module_region;
    return "ML\xefR" + number(6) + std::string("test\0", 5) + section(1, dialects) + section(3, sizes) +
           section(2, entries) + section(4, number(1 << 1) + module) + section(5, "") + section(6, number(0)) +
           section(0, strings) + section(8, properties);
  }
  std::string refused() const {
    const std::string text = bytes();
    return refusal(std::as_bytes(std::span(text)));
  }
};

TEST(bytecode_check, accepts_every_golden_kernel) {
  int seen = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(kiln::testing::source_folder() / "test/compat"))
    if (entry.path().extension() == ".mlirbc") {
      EXPECT_EQ(refusal(read(entry.path())), "") << entry.path();
      ++seen;
    }
  EXPECT_GE(seen, 89);
}

TEST(bytecode_check, accepts_every_sample_within_a_millisecond) {
  for (const auto& bytes : samples()) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(refusal(bytes), "");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(10));
  }
}

TEST(bytecode_check, no_kernel_may_be_cut) {
  for (const auto& bytes : samples())
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_NE(refusal(std::span(bytes).first(size)), "") << size;
}

// What the check accepts, MLIR's reader takes or refuses in this very process.
TEST(bytecode_check, no_flipped_bit_that_it_accepts_harms_the_reader) {
  const compiler_context context;
  int refused = 0, accepted = 0;
  std::size_t at = 0;
  for (const auto& bytes : samples())
    for (; at < bytes.size() * 8 || (at -= bytes.size() * 8, false); at += 7) {
      auto copy = bytes;
      copy[at / 8] ^= std::byte(1 << at % 8);
      if (!refusal(copy).empty()) {
        ++refused;
        continue;
      }
      ++accepted;
      try {
        portable_kernel::parse(context, copy);
      } catch (const error&) {}
    }
  EXPECT_GT(refused, 5000);
  EXPECT_GT(accepted, 1000);
}

// The structure is sound, so MLIR reads it; what the operations mean is for its verifier.
TEST(bytecode_check, a_structure_made_by_hand_is_one) {
  const std::string text = parts{}.bytes();
  ASSERT_EQ(parts{}.refused(), "");
  try {
    print_kernel(std::as_bytes(std::span(text)));
    FAIL() << "a kernel without attributes";
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("requires attribute 'function_type'"));
  }
}

TEST(bytecode_check, counts_are_bounded_by_the_bytes) {
  const std::string many = number(std::uint64_t{1} << 40);
  for (auto part : {&parts::strings, &parts::dialects, &parts::sizes, &parts::properties, &parts::values}) {
    parts p;
    (p.*part).replace(0, 1, many);
    EXPECT_NE(p.refused(), "");
  }
  parts p;
  p.in_kernel = number(2) + "\x04" + number(0) + many;
  EXPECT_THAT(p.refused(), HasSubstr("operands"));
}

// A symbol with a zero byte cannot stand in an object (found by test/long/mutate_kernels.cpp).
TEST(bytecode_check, strings_hold_no_zero_byte) {
  parts p;
  p.strings = string_table({"builtin", "module", "kiln", "kernel", "return", std::string("a\0b", 3)});
  EXPECT_THAT(p.refused(), HasSubstr("zero byte"));
}

TEST(bytecode_check, values_must_exist_before_they_are_used) {
  parts p;
  p.in_kernel = number(2) + "\x04" + number(0) + number(1) + number(1);
  EXPECT_THAT(p.refused(), HasSubstr("value 1 of 1"));
  p = {};
  p.values = number(2);
  EXPECT_THAT(p.refused(), HasSubstr("values"));
}

TEST(bytecode_check, orders_of_uses_are_permutations) {
  // %0 is used twice; 0xffffffff and 0xfffffffe are the marks of LLVM's hash tables.
  const auto order = [](const std::string& places) {
    parts p;
    p.header.back() = '\1';
    p.header += places;
    p.in_kernel = number(2) + "\x04" + number(0) + number(2) + number(0) + number(0);
    return p.refused();
  };
  EXPECT_EQ(order(number(2 << 1) + number(1) + number(0)), "");
  EXPECT_NE(order(number(2 << 1) + number(1) + number(1)), "");
  EXPECT_NE(order(number(2 << 1) + number(0xffffffff) + number(0xfffffffe)), "");
  EXPECT_NE(order(number(1 << 1) + number(0)), "");
  // Pairs of a use and its place: these two change places.
  EXPECT_EQ(order(number(4 << 1 | 1) + number(0) + number(1) + number(1) + number(0)), "");
  EXPECT_NE(order(number(2 << 1 | 1) + number(1u << 31) + number(1)), "");
  EXPECT_NE(order(number(3 << 1 | 1) + number(0) + number(1) + number(1)), "");
}

TEST(bytecode_check, nothing_contains_itself) {
  parts p;  // an array that holds itself in place of the dictionary
  p.sizes = number(2) + number(2) + number(0) + number(2) + number(1 << 1 | 1) + number(3 << 1 | 1) + number(0) +
            number(2) + number(1 << 1 | 1) + number(4 << 1 | 1);
  p.entries =
      number(15) + number(0) + number(1) + number(1) + number(5) + number(13) + number(1) + number(3 << 1) + number(0);
  EXPECT_THAT(p.refused(), HasSubstr("contain each other"));
}

TEST(bytecode_check, nesting_is_bounded) {
  // 100 arrays, each with the next one in it.
  parts p;
  std::string sizes = number(1 << 1 | 1), data = number(15);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const std::string array = number(0) + number(i < 100 ? 1 : 0) + (i < 100 ? number(i + 1) : "");
    sizes += number(array.size() << 1 | 1);
    data += array;
  }
  p.sizes = number(101) + number(2) + number(0) + number(101) + sizes + number(0) + number(2) + number(1 << 1 | 1) +
            number(4 << 1 | 1);
  p.entries = data + number(5) + number(13) + number(1) + number(3 << 1) + number(0);
  EXPECT_THAT(p.refused(), HasSubstr("nested too deeply"));
}

TEST(bytecode_check, other_dialects_and_newer_versions_are_named) {
  parts p;
  p.strings = string_table({"builtin", "module", "scf", "for", "yield"});
  EXPECT_THAT(p.refused(), HasSubstr("'scf'"));
  p = {};
  p.dialects[5] = number(100)[0];
  EXPECT_THAT(p.refused(), HasSubstr("needs version 100"));
}

}  // namespace
}  // namespace kiln::test
