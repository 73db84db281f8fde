// Bytes that are no module, and modules that the reader does not support, are refused by name. test/long/fuzz_spirv.sh
// tests random damage under AddressSanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstring>
#include <map>

#include "ir/error.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "spirv/offload_bundle.hpp"
#include "spirv/reader/reader.hpp"
#include "test/support/paths.hpp"

namespace kiln::spirv {
namespace {

using ::testing::HasSubstr;

const std::vector<std::byte>& sound(const std::string& file) {
  static std::map<std::string, std::vector<std::byte>> modules;
  auto [found, fresh] = modules.try_emplace(file);
  if (fresh) found->second = compile_hip_file(kiln::testing::source_folder() / "test/spirv/reader/corpus" / file).words;
  return found->second;
}

error_kind kind_of(std::span<const std::byte> module, std::string* message = nullptr) {
  llvm::LLVMContext context;
  try {
    read(module, context, {amdgpu_spaces});
  } catch (const error& e) {
    if (message) *message = e.what();
    return e.kind();
  }
  return error_kind::mismatch;
}

std::vector<std::byte> with_word(std::vector<std::byte> module, std::size_t at, std::uint32_t word) {
  std::memcpy(module.data() + 4 * at, &word, 4);
  return module;
}

// The module with another instruction in front of its first.
std::vector<std::byte> with_first(const std::vector<std::byte>& module, std::vector<std::uint32_t> words) {
  std::vector<std::byte> result(module.begin(), module.begin() + 20);
  auto added = std::as_bytes(std::span(words));
  result.insert(result.end(), added.begin(), added.end());
  result.insert(result.end(), module.begin() + 20, module.end());
  return result;
}

TEST(spirv_reader, refuses_what_is_no_module) {
  EXPECT_EQ(kind_of({}), error_kind::corrupted);
  EXPECT_EQ(kind_of(std::vector(7, std::byte{1})), error_kind::corrupted);
  const auto& module = sound("shared.hip");
  EXPECT_EQ(kind_of(module), error_kind::mismatch) << "a sound module is read";
  EXPECT_EQ(kind_of(with_word(module, 0, 0x12345678)), error_kind::corrupted);
  EXPECT_EQ(kind_of(with_word(module, 1, 0x00020000)), error_kind::unsupported);
  for (std::size_t bytes = 0; bytes < module.size(); bytes += 36)
    EXPECT_EQ(kind_of(std::span(module).first(bytes)), error_kind::corrupted) << bytes;
}

TEST(spirv_reader, names_what_it_does_not_know) {
  std::string message;
  EXPECT_EQ(kind_of(with_first(sound("shared.hip"), {2u << 16 | 17, 1}), &message), error_kind::unsupported);
  EXPECT_THAT(message, HasSubstr("Shader"));
  EXPECT_EQ(kind_of(with_first(sound("shared.hip"), {1u << 16 | 252}), &message), error_kind::unsupported);
  EXPECT_THAT(message, HasSubstr("OpKill"));
  EXPECT_EQ(kind_of(with_first(sound("shared.hip"), {3u << 16 | 10, 0x5f565053, 0x00000058}), &message),
            error_kind::unsupported);
  EXPECT_THAT(message, HasSubstr("SPV_X"));
}

// The form that clang-offload-bundler writes: magic, count, entries with offsets and sizes, contents.
TEST(offload_bundle, holds_the_module_under_rocms_name) {
  const auto& module = sound("shared.hip");
  auto bundle = make_offload_bundle(module);
  std::string text(reinterpret_cast<const char*>(bundle.data()), bundle.size());
  EXPECT_TRUE(text.starts_with("__CLANG_OFFLOAD_BUNDLE__"));
  std::uint64_t count = 0, offset = 0, size = 0, length = 0;
  std::memcpy(&count, bundle.data() + 24, 8);
  ASSERT_EQ(count, 2u);
  std::size_t at = 32;
  for (std::uint64_t k = 0; k < count; ++k) {
    std::memcpy(&offset, bundle.data() + at, 8), std::memcpy(&size, bundle.data() + at + 8, 8),
        std::memcpy(&length, bundle.data() + at + 16, 8);
    std::string id = text.substr(at + 24, length);
    EXPECT_TRUE(k ? id == "hip-spirv64-amd-amdhsa--amdgcnspirv" && size == module.size()
                  : id.starts_with("host-") && size == 0)
        << id;
    at += 24 + length;
  }
  ASSERT_EQ(offset + size, bundle.size());
  EXPECT_TRUE(std::equal(module.begin(), module.end(), bundle.begin() + static_cast<std::ptrdiff_t>(offset)));
}

}  // namespace
}  // namespace kiln::spirv
