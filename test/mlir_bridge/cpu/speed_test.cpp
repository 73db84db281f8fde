// Rough checks of speed and compile time: prints the figures, and fails only if one is far from the values measured
// before the project began (shared machines are noisy).
#include <array>
#include <chrono>
#include <cstdio>

#include "harness.hpp"

namespace kiln::test {
namespace {

using in = const std::vector<value>&;

double milliseconds(const std::function<void()>& run) {
  double best = 1e9;
  for (int i = 0; i < 50; ++i) {
    auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

void measure(const char* name, const module& m, double limit) {
  std::mt19937 random(1);
  std::vector<literal> inputs;
  for (value p : m.parameters()) inputs.push_back(random_literal(p.type(), random));
  for (const target_row& target : runnable_targets()) {
    loaded_kernel first(m, target);
    finalize_trace trace;
    loaded_kernel kernel(m, target, {}, &trace);
    double ms = milliseconds(kernel.prepared(inputs));
    std::printf(
        "%-24s %s %8.4f ms   compile: generate %.1f lower %.1f optimize %.1f codegen %.1f ms, object %zu bytes\n", name,
        target.name.c_str(), ms, trace.generate_ms, trace.lower_ms, trace.optimize_ms, trace.codegen_ms,
        kernel.native().object.size());
    EXPECT_LT(ms, limit) << name;
  }
}

TEST(speed, pointwise_and_reductions) {
  measure(
      "mul-add-gelu 1M",
      *fusion({f32({1024, 1024}), f32({1024, 1024}), f32({1024})},
              [](module& m, in p) {
                value x = m.add(elementwise{scalar_function::mul}, {p[0], p[1]});
                x = m.add(elementwise{scalar_function::add}, {x, m.add(broadcast{{1024, 1024}}, {p[2]})});
                auto constant = [&](double v) {
                  return m.add(broadcast{{1024, 1024}}, {m.add_constant(literal::scalar(element_type::f32, v))});
                };
                value e = m.add(elementwise{scalar_function::erf},
                                {m.add(elementwise{scalar_function::mul}, {x, constant(0.70710678118654752)})});
                value half = m.add(elementwise{scalar_function::mul}, {x, constant(0.5)});
                return std::vector<value>{m.add(elementwise{scalar_function::mul},
                                                {half, m.add(elementwise{scalar_function::add}, {e, constant(1)})})};
              }),
      20);
  measure(
      "softmax 128x768",
      *fusion({f32({128, 768})}, [](module& m, in p) { return std::vector<value>{m.add(softmax{1, false}, {p[0]})}; }),
      2);
  measure("layernorm 128x768",
          *fusion({f32({128, 768}), f32({768}), f32({768})},
                  [](module& m, in p) {
                    value n = m.add(normalize{{1}, 1e-5, true}, {p[0]});
                    value s = m.add(elementwise{scalar_function::mul}, {n, m.add(broadcast{{128, 768}}, {p[1]})});
                    return std::vector<value>{
                        m.add(elementwise{scalar_function::add}, {s, m.add(broadcast{{128, 768}}, {p[2]})})};
                  }),
          1);
  measure("transpose 1024x1024",
          *fusion({f32({1024, 1024})},
                  [](module& m, in p) { return std::vector<value>{m.add(transpose{{1, 0}}, {p[0]})}; }),
          50);
  measure("mean 7x7x2048",
          *fusion({f32({1, 7, 7, 2048})},
                  [](module& m, in p) {
                    return std::vector<value>{m.add(reduce{reduction_kind::mean, {1, 2}, false}, {p[0]})};
                  }),
          2);
  measure("maxpool 112x112x64",
          *fusion({f32({1, 112, 112, 64})},
                  [](module& m, in p) {
                    return std::vector<value>{m.add(pooling{pooling_kind::max,
                                                            {3, 3},
                                                            {2, 2},
                                                            {1, 1},
                                                            {1, 1},
                                                            {1, 1},
                                                            false,
                                                            false,
                                                            tensor_layout::channels_last},
                                                    {p[0]})};
                  }),
          10);
}

// The rows differ in what they multiply bf16 and bytes with: f32, pairs of 16 bits, VNNI, AVX512-BF16 or AMX.
void measure_products(element_type left, element_type right, element_type sums) {
  const std::string type(name(left));
  for (auto [m, k, n] :
       {std::array<std::int64_t, 3>{128, 768, 768}, {128, 768, 3072}, {8, 2048, 2048}, {1, 2048, 2048}}) {
    const std::string name = type + " " + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n);
    measure(name.c_str(),
            *fusion({typed(left, {m, k}), typed(right, {k, n})},
                    [&](module& f, in p) { return std::vector<value>{f.add(dot{.type = sums}, {p[0], p[1]})}; }),
            100);
  }
  for (auto [pixels, channels, features, window] :
       {std::array<std::int64_t, 4>{56, 64, 64, 3}, {56, 256, 64, 1}, {14, 256, 256, 3}, {7, 512, 512, 3}}) {
    const std::string name = type + " conv " + std::to_string(pixels) + " " + std::to_string(channels) + " " +
                             std::to_string(features) + " " + std::to_string(window);
    measure(name.c_str(),
            *fusion({typed(left, {1, pixels, pixels, channels}), typed(right, {window, window, channels, features})},
                    [&](module& f, in p) {
                      const std::int64_t pad = window / 2;
                      const convolution op{{1, 1}, {1, 1}, {pad, pad}, {pad, pad}, 1, tensor_layout::channels_last};
                      return std::vector<value>{f.add(op, {p[0], p[1]})};
                    }),
            100);
  }
}

TEST(speed, products_of_bf16) { measure_products(element_type::bf16, element_type::bf16, element_type::bf16); }
TEST(speed, products_of_bytes) { measure_products(element_type::u8, element_type::i8, element_type::i32); }

}  // namespace
}  // namespace kiln::test
