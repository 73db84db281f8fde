#include "ir/dim_table.hpp"

#include <gtest/gtest.h>

#include <random>

#include "ir/error.hpp"

namespace kiln::testing {
namespace {

TEST(dim_table, equal_dims_have_one_index) {
  dim_table t;
  const dim a = dim::symbol("a"), b = dim::symbol("b");
  EXPECT_EQ(t.add(a * b + 2), t.add(dim(2) + b * a));
  EXPECT_NE(t.add(a), t.add(b));
  EXPECT_EQ(t.add(dim(7)), t.add(dim(7)));
  EXPECT_EQ(t.size(), 4u);
}

TEST(dim_table, values_are_those_of_substitution) {
  std::mt19937 engine(5);
  const std::vector<std::string> names{"a", "b", "c"};
  auto any = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  };
  auto made = [&](auto& self, int depth) -> dim {
    if (depth == 0) return any(0, 3) ? dim::symbol(names[static_cast<std::size_t>(any(0, 2))]) : dim(any(-5, 9));
    const dim x = self(self, depth - 1), y = self(self, depth - 1);
    switch (any(0, 5)) {
      case 0: return x + y;
      case 1: return x - y;
      case 2: return x * y;
      case 3: return dim::min(x, y);
      case 4: return dim::max(x, y);
      default: return x / dim(any(1, 7));
    }
  };
  for (int round = 0; round < 200; ++round) {
    dim_table t;
    std::vector<dim> dims;
    std::vector<dim_table::index> indices;
    for (int i = 0; i < 20; ++i) indices.push_back(t.add(dims.emplace_back(made(made, static_cast<int>(any(0, 3))))));
    for (int k = 0; k < 5; ++k) {
      const dim_bindings sizes{{"a", any(0, 40)}, {"b", any(1, 9)}, {"c", any(0, 1000)}};
      const auto values = t.evaluate(sizes);
      ASSERT_TRUE(values);
      for (std::size_t i = 0; i < dims.size(); ++i)
        ASSERT_EQ((*values)[indices[i]], dims[i].substitute(sizes).value()) << dims[i].str();
    }
  }
}

TEST(dim_table, what_has_no_value) {
  const dim a = dim::symbol("a"), b = dim::symbol("b");
  auto value = [](const dim& d, const dim_bindings& sizes) {
    dim_table t;
    t.add(d);
    return t.evaluate(sizes);
  };
  EXPECT_FALSE(value(a + b, {{"a", 1}}));                      // a symbol is missing
  EXPECT_FALSE(value((a + 1) / b, {{"a", 1}, {"b", 0}}));      // division by zero
  EXPECT_FALSE(value(a * a, {{"a", std::int64_t{1} << 40}}));  // overflow
  EXPECT_FALSE(value(a + b, {{"a", INT64_MAX}, {"b", 1}}));
  EXPECT_EQ(value((dim(0) - a) / dim(4), {{"a", 5}})->at(0), -2);
}

}  // namespace
}  // namespace kiln::testing
