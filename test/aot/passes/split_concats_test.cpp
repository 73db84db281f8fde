#include "aot/passes/split_concats.hpp"

#include "aot/kernels/formation.hpp"
#include "aot/pipeline.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

TEST(split_concats, make_a_tree_of_what_is_too_wide) {
  auto build = [](std::size_t width) {
    return [width](builder& b) {
      std::vector<value> parts;
      for (std::size_t i = 0; i < width; ++i) parts.push_back(b.p("x" + std::to_string(i), {1, 2}));
      b.out({b.m.add(concat{0}, parts)});
    };
  };
  for (const auto& [width, concats] : {std::pair{most_joined_inputs, 1}, {most_joined_inputs + 1, 2}, {300, 4}}) {
    const program p = transformed(build(width), {split_concats{}}, 0);
    EXPECT_EQ(count<concat>(p.main()), static_cast<std::size_t>(concats)) << width;
    for (const instruction& i : p.main().instructions()) EXPECT_LE(i.inputs().size(), most_joined_inputs);
  }
}

// A kernel takes 4096 arguments at most (ir/native_kernel.cpp), and the time to compile it grows with them.
TEST(split_concats, kernels_that_join_very_many_tensors_read_some_of_them) {
  program p;
  builder b(p.main());
  std::vector<value> parts;
  for (int i = 0; i < 5000; ++i) parts.push_back(b.f(abs, {b.p("x" + std::to_string(i), {1})}));
  b.out({b.m.add(concat{0}, parts)});
  std::vector<formed_kernel> kernels;
  p = compile(std::move(p), {}, &kernels);
  ASSERT_FALSE(kernels.empty());
  for (const formed_kernel& k : kernels) EXPECT_LE(k.fusion->parameters().size(), 2000u);
}

}  // namespace
}  // namespace kiln::testing
