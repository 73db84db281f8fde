// Depthwise convolutions whose channels are normalized, with an open number of images.
#include "ir/independent_rows.hpp"
#include "ir/open_form.hpp"
#include "test/aot/passes/formed.hpp"

namespace kiln::testing {
namespace {

program windows(const dim& images, const dim& height) {
  program p;
  p.symbols["n"] = p.symbols["h"] = {};
  builder b(p.main());
  const value x = b.p("x", {images, height, 6, 8});
  const value sums =
      b.m.add(convolution{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 8, tensor_layout::channels_last}, {x, b.w({3, 3, 1, 8})});
  b.out({b.m.add(normalize{{3}, 1e-5}, {sums})});
  p.validate();
  return p;
}

TEST(normalized_window, is_one_kernel_for_any_number_of_images) {
  const dim n = dim::symbol("n");
  program p = windows(n, 5);
  const auto expected = run(p.bind({{"n", 3}, {"h", 5}}));
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  p.validate();
  ASSERT_EQ(kernels.size(), 1u);
  const std::string payload = kernels[0].payload.hex();
  EXPECT_EQ(recorded_rows(p, payload), std::optional(n));
  EXPECT_EQ(recorded_missing_form(p, payload, processor::gpu), "");
  program bound = unformed(p, kernels);
  bound.symbols = p.symbols;
  expect_equal(expected, run(bound.bind({{"n", 3}, {"h", 5}})), 1e-6);
}

// Kernels for open images read the sums from memory.
TEST(normalized_window, is_two_kernels_for_images_of_open_height) {
  program p = windows(2, dim::symbol("h"));
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  ASSERT_EQ(kernels.size(), 2u);
  for (const formed_kernel& kernel : kernels)
    for (const processor on : {processor::cpu, processor::gpu})
      EXPECT_EQ(recorded_missing_form(p, kernel.payload.hex(), on), "");
}

}  // namespace
}  // namespace kiln::testing
