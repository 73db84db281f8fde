// Objects that CMake compiled from kernels/*.c.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace kiln::testing {

// What the objects are compiled for.
#if defined(__aarch64__)
inline constexpr const char* objects_target = "armv8-a";
#else
inline constexpr const char* objects_target = "x86-64";
#endif

inline std::vector<std::byte> read_object(const std::string& name) {
  std::ifstream file(std::string(KILN_TEST_OBJECTS) + "/" + name + ".o", std::ios::binary);
  EXPECT_TRUE(file) << name;
  std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

}  // namespace kiln::testing
