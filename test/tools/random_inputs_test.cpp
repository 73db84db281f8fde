#include "tools/random_inputs.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace kiln::tools {
namespace {

// A seed must give the same inputs in every build, so that outputs can be compared.
TEST(random_inputs, are_those_of_the_standard_librarys_normal_distribution) {
  constexpr std::uint64_t seed = 7;
  std::uint64_t name_bits;
  std::memcpy(&name_bits, blake3("x").bytes.data(), sizeof name_bits);
  std::mt19937_64 engine(seed ^ name_bits);
  std::normal_distribution<float> normal;
  const literal made = random_input(program(), "x", {element_type::f32, {1001, 3}}, seed);
  for (const float number : made.as<float>()) ASSERT_EQ(number, normal(engine));
}

}  // namespace
}  // namespace kiln::tools
