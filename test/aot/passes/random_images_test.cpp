#include "aot/kernels/formation.hpp"
#include "aot/pipeline.hpp"
#include "test/aot/passes/legal_fusion.hpp"
#include "test/aot/passes/passes_test.hpp"
#include "test/aot/passes/unformed.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

// Random graphs of images, channels first, through the whole pipeline: it must preserve the numbers.
class random_images : public ::testing::TestWithParam<unsigned> {};

TEST_P(random_images, optimize_and_form_without_changing_numbers) {
  std::mt19937 g(GetParam());
  program p;
  builder b(p.main());
  constexpr std::int64_t c = 6, h = 5, w = 4;
  std::vector<value> values{b.p("x", {2, c, h, w}), b.p("y", {2, c, h, w})};
  auto pick = [&] { return values[values.size() - 1 - g() % std::min<std::size_t>(values.size(), 4)]; };
  auto cut = [&](value v, std::vector<std::int64_t> starts, std::vector<dim> lengths) {
    return b.m.add(slice{std::move(starts), std::move(lengths), {1, 1, 1, 1}}, {v});
  };
  unsigned seed = 100;
  for (int i = 0; i < 25; ++i) {
    value v = pick(), u = pick();
    switch (g() % 18) {
      case 0: v = b.m.add(convolution{{1, 1}, {1, 1}, {1, 0}, {1, 0}, 1}, {v, b.w({c, c, 3, 1}, ++seed)}); break;
      case 1: v = b.m.add(convolution{{1, 1}, {1, 1}, {1, 1}, {1, 1}, c}, {v, b.w({c, 1, 3, 3}, ++seed)}); break;
      case 2: v = b.m.add(convolution{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 3}, {v, b.w({c, 2, 1, 1}, ++seed)}); break;
      case 3:
        v = b.m.add(transposed_convolution{{1, 1}, {1, 1}, {1, 0}, {1, 0}, {0, 0}, 2}, {v, b.w({c, 3, 3, 1}, ++seed)});
        break;
      case 4:
        v = b.f(mul, v, b.w({c, 1, 1}, ++seed));
        v = b.f(add, v, b.w({1, c, 1, 1}, ++seed));
        break;
      case 5: v = b.f(mul, {v, b.f(sigmoid, {v})}); break;
      case 6: v = b.f(add, {v, u}); break;
      case 7:
        v = b.m.add(
            pooling{g() % 2 ? pooling_kind::max : pooling_kind::average, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, {v});
        break;
      case 8: v = b.m.add(concat{1}, {cut(v, {0, 1, 0, 0}, {2, 4, h, w}), cut(u, {0, 4, 0, 0}, {2, 2, h, w})}); break;
      case 9: v = cut(b.m.add(pad{{0, 0, 1, 2}, {0, 0, 0, 1}, pad_mode::edge}, {v}), {0, 0, 0, 1}, {2, c, h, w}); break;
      case 10: v = b.r(b.m.add(normalize{{2}, 1e-2}, {b.r(v, {2, 3, 2 * h * w})}), {2, c, h, w}); break;
      case 11: v = b.m.add(softmax{static_cast<std::int64_t>(1 + g() % 3)}, {v}); break;
      case 12:
        v = b.f(mul, v,
                b.f(sigmoid,
                    {b.m.add(convolution{{1, 1}, {1, 1}, {0, 0}, {0, 0}},
                             {b.m.add(reduce{reduction_kind::mean, {2, 3}, true}, {v}), b.w({c, c, 1, 1}, ++seed)})}));
        break;
      case 13:
        v = b.r(b.t(b.m.add(dot{}, {b.t(b.r(v, {2, c, h * w}), {0, 2, 1}), b.to(b.w({c, c}, ++seed), {2, c, c})}),
                    {0, 2, 1}),
                {2, c, h, w});
        break;
      case 14: v = b.r(b.t(b.r(v, {2, 2, 3, h, w}), {0, 2, 1, 3, 4}), {2, c, h, w}); break;
      case 15: v = b.f(sub, v, b.r(b.m.add(reduce{reduction_kind::max, {1}, false}, {u}), {2, 1, h, w})); break;
      case 16:
        v = cut(
            b.m.add(resize{{2, c, 2 * h, 2 * w}, {1, 1, 2, 2}, g() % 2 ? resize_mode::linear : resize_mode::nearest},
                    {v}),
            {0, 0, 3, 2}, {2, c, h, w});
        break;
      case 17:
        v = b.f(tanh, {b.m.add(gather{1}, {v, b.m.add_constant(literal::from_int64({3, 1, 5, 0, 4, 4}))})});
        break;
    }
    values.push_back(b.f(clamp, {v, b.to(b.c(-8), v.type().dims), b.to(b.c(8), v.type().dims)}));
  }
  b.out({values.back(), b.m.add(reduce{reduction_kind::mean, {2, 3}, false}, {values[values.size() - 2]}), values[12]});
  auto expected = run(p);
  optimize(p);
  p.validate();
  expect_equal(expected, run(p), 5e-4);
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  p.validate();
  for (const formed_kernel& k : kernels) expect_legal(*k.fusion);
  expect_equal(expected, run(unformed(p, kernels)), 5e-4);
  for (const formed_kernel& k : kernels) {
    const auto* op = only<convolution>(*k.fusion);
    EXPECT_TRUE(!op || op->layout == tensor_layout::channels_last);
  }
}

INSTANTIATE_TEST_SUITE_P(seeds, random_images, ::testing::Range(1u, 120u));

}  // namespace
}  // namespace kiln::testing
