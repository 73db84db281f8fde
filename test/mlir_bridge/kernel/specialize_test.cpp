// Specializing symbolic kernels to static shapes; shapes that do not match are refused.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "ir/program.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "test/mlir_bridge/kernel/sample_fusions.hpp"

namespace kiln::test {
namespace {

using enum element_type;

const compiler_context& context() {
  static const compiler_context shared;
  return shared;
}

portable_kernel parsed(const module& fusion) {
  return portable_kernel::parse(context(), write_kernel(fusion, "sample"));
}

std::vector<shape> shapes(std::vector<std::vector<dim>> dims) {
  std::vector<shape> result;
  for (auto& d : dims) result.push_back({f32, std::move(d)});
  return result;
}

TEST(specialize, every_type_becomes_static_and_the_numbers_are_right) {
  portable_kernel kernel = parsed(*symbolic_dot_fusion());
  portable_kernel copy = kernel.clone();
  kernel.specialize(shapes({{3, 5}, {7, 5}, {7}}));
  EXPECT_EQ(kernel.input_shapes(), shapes({{3, 5}, {7, 5}, {7}}));
  EXPECT_EQ(kernel.output_shapes(), shapes({{3, 7}, {3, 7}}));
  EXPECT_EQ(kernel.print().find('?'), std::string::npos) << kernel.print();
  EXPECT_NE(copy.print().find('?'), std::string::npos) << "a clone changed with its original";

  auto fusion = to_fusion(kernel);
  auto inputs = sample_inputs(*fusion);
  auto outputs = evaluate(*fusion, inputs);
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 7; ++column) {
      double sum = inputs[2].at(column);
      for (int k = 0; k < 5; ++k) sum += inputs[0].at(row * 5 + k) * inputs[1].at(column * 5 + k);
      EXPECT_NEAR(outputs[1].at(row * 7 + column), sum, 1e-5);
      EXPECT_NEAR(outputs[0].at(row * 7 + column), std::max(0.0, sum / 2), 1e-5);
    }
}

TEST(specialize, a_specialized_kernel_may_be_specialized_again_to_the_same) {
  portable_kernel kernel = parsed(*symbolic_dot_fusion());
  kernel.specialize(shapes({{3, 5}, {7, 5}, {7}}));
  std::string once = kernel.print();
  kernel.specialize(shapes({{3, 5}, {7, 5}, {7}}));
  EXPECT_EQ(kernel.print(), once);
  EXPECT_THROW(kernel.specialize(shapes({{4, 5}, {7, 5}, {7}})), error);
}

// Sizes that a model computes in floats are symbols of the kernel, which become the model's expressions.
TEST(specialize, open_sizes_that_are_computed_in_floats) {
  const auto scaled = [](float by, const char* of) {
    return dim::floor_of_real({{real_step::kind::size}, {real_step::kind::number, 0, by}, {real_step::kind::mul}},
                              {dim::symbol(of)});
  };
  const dim first = dim::symbol("computed.0"), second = dim::symbol("computed.1"), batch = dim::symbol("batch");
  module fusion("kernel");
  const value x =
      fusion.add_parameter("p0", {f32, {batch, (first + dim(31)) / dim(32) * ((second + dim(31)) / dim(32))}});
  const value y = fusion.add_parameter("p1", {f32, {first * dim(2), second}});
  fusion.set_outputs(
      {fusion.add(elementwise{scalar_function::relu}, {x}), fusion.add(elementwise{scalar_function::relu}, {y})},
      {"o0", "o1"});
  const dim h = scaled(0.7f, "height"), w = scaled(0.3f, "width");
  for (const auto& [a, b] : {std::pair(h, w), std::pair(w, h), std::pair(w, h)}) {
    const auto sizes = shapes({{batch, (a + dim(31)) / dim(32) * ((b + dim(31)) / dim(32))}, {a * dim(2), b}});
    portable_kernel kernel = parsed(fusion);
    kernel.specialize(sizes, sizes);
    EXPECT_EQ(kernel.input_shapes(), sizes);
    EXPECT_EQ(kernel.output_shapes(), sizes);
  }
  portable_kernel kernel = parsed(fusion);
  EXPECT_THROW(kernel.specialize(shapes({{batch, h * w}, {h, w}})), error);
}

// Symbols that are not given stay, in terms of the kernel's.
TEST(specialize, some_dims_may_stay_open) {
  const shape batch_of_five = parsed(*symbolic_dot_fusion()).input_shapes()[0];
  const dim batch = batch_of_five.dims[0];
  portable_kernel kernel = parsed(*symbolic_dot_fusion());
  kernel.specialize(shapes({{batch, 5}, {7, 5}, {7}}));
  EXPECT_EQ(kernel.input_shapes(), shapes({{batch, 5}, {7, 5}, {7}}));
  EXPECT_EQ(kernel.output_shapes(), shapes({{batch, 7}, {batch, 7}}));
  kernel.specialize(shapes({{3, 5}, {7, 5}, {7}}));
  EXPECT_EQ(kernel.output_shapes(), shapes({{3, 7}, {3, 7}}));
}

TEST(specialize, shapes_that_do_not_fit) {
  for (const auto& wrong : {shapes({{3, 6}, {7, 5}, {7}}), shapes({{3, 5}, {7, 5}, {8}}), shapes({{3, 5}, {7, 5}}),
                            shapes({{3, 5, 1}, {7, 5}, {7}}), shapes({{dim::symbol("another"), 5}, {7, 5}, {7}}),
                            std::vector<shape>{{f16, {3, 5}}, {f32, {7, 5}}, {f32, {7}}}}) {
    try {
      parsed(*symbolic_dot_fusion()).specialize(wrong);
      FAIL() << wrong[0].str();
    } catch (const error& e) {
      EXPECT_EQ(e.kind(), error_kind::invalid_model) << e.what();
    }
  }
}

// x[in] → exp → x, plus a broadcast of a scalar to `other`.
std::unique_ptr<module> two_dims(const dim& in, const dim& other) {
  auto m = std::make_unique<module>("sample");
  value x = m->add_parameter("input0", {f32, {in}});
  value s = m->add_parameter("input1", {f32, {}});
  m->set_outputs({m->add(elementwise{scalar_function::exp}, {x}), m->add(broadcast{{other}}, {s})},
                 {"output0", "output1"});
  return m;
}

TEST(specialize, expressions_are_solved_where_they_have_one_solution) {
  dim n = dim::symbol("n");
  portable_kernel kernel = parsed(*two_dims(2 * n + 1, 3 * n));
  kernel.specialize(shapes({{11}, {}}));
  EXPECT_EQ(kernel.output_shapes(), shapes({{11}, {15}}));
  EXPECT_THROW(parsed(*two_dims(2 * n + 1, 3 * n)).specialize(shapes({{10}, {}})), error) << "2n+1 is odd";
}

TEST(specialize, a_rounded_dimension_has_no_one_solution_but_stands_for_itself) {
  dim n = dim::symbol("n");
  portable_kernel same = parsed(*two_dims(n / 2, n / 2));
  same.specialize(shapes({{11}, {}}));
  EXPECT_EQ(same.output_shapes(), shapes({{11}, {11}}));
  EXPECT_THROW(parsed(*two_dims(n / 2, n)).specialize(shapes({{11}, {}})), error) << "n is 22 or 23";
  portable_kernel told = parsed(*two_dims(n / 2, n));
  told.specialize(shapes({{11}, {}}), shapes({{11}, {23}}));
  EXPECT_EQ(told.output_shapes(), shapes({{11}, {23}}));
  EXPECT_THROW(parsed(*two_dims(n / 2, n)).specialize(shapes({{11}, {}}), shapes({{11}, {24}})), error)
      << "24 / 2 is not 11";
}

TEST(specialize, a_dimension_tells_the_quotient_in_it) {
  dim n = dim::symbol("n");
  portable_kernel kernel = parsed(*two_dims(n / 16 * 4, n / 16 * 4 - 2));
  kernel.specialize(shapes({{12}, {}}));
  EXPECT_EQ(kernel.output_shapes(), shapes({{12}, {10}}));
}

TEST(specialize, a_dimension_tells_the_quotient_in_a_maximum) {
  dim n = dim::symbol("n");
  portable_kernel kernel = parsed(*two_dims((n + 12) / 16 * 4, dim::max(4, (n + 12) / 16 * 4) - 4));
  kernel.specialize(shapes({{12}, {}}));
  EXPECT_EQ(kernel.output_shapes(), shapes({{12}, {8}}));
}

TEST(specialize, a_symbol_of_outputs_only) {
  portable_kernel kernel = parsed(*two_dims(3, dim::symbol("batch")));
  EXPECT_THROW(kernel.clone().specialize(shapes({{3}, {}})), error);
  kernel.specialize(shapes({{3}, {}}), shapes({{3}, {9}}));
  EXPECT_EQ(kernel.output_shapes(), shapes({{3}, {9}}));
}

TEST(specialize, symbols_that_meet_in_a_product) {
  dim a = dim::symbol("a"), b = dim::symbol("b");
  module m("sample");
  value x = m.add_parameter("input0", {f32, {a * b, a}});
  m.set_outputs({m.add(reshape{{a, b, a}}, {x})}, {"output0"});
  portable_kernel kernel = parsed(m);
  kernel.specialize(shapes({{15, 3}}));
  EXPECT_EQ(kernel.output_shapes(), shapes({{3, 5, 3}}));
  EXPECT_THROW(parsed(m).specialize(shapes({{16, 3}})), error);
}

TEST(specialize, shape_rules_give_what_no_text_says) {
  dim n = dim::symbol("n");
  module m("sample");
  value x = m.add_parameter("input0", {f32, {1, n / 2, 3}});
  value w = m.add_parameter("input1", {f32, {3, 3, 5}});
  m.set_outputs({m.add(convolution{{2}, {1}, {1}, {1}, 1, tensor_layout::channels_last}, {x, w})}, {"output0"});
  portable_kernel kernel = parsed(m);
  kernel.specialize(shapes({{1, 13, 3}, {3, 3, 5}}));
  EXPECT_EQ(kernel.output_shapes(), shapes({{1, 7, 5}}));
}

TEST(compiler_context, many_threads_parse_clone_and_specialize_in_one) {
  auto good = write_kernel(*symbolic_dot_fusion(), "sample");
  auto bad = good;
  bad.resize(good.size() / 2);
  std::atomic<int> right{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      portable_kernel kernel = portable_kernel::parse(context(), good);
      for (std::int64_t n = 1; n <= 25; ++n) {
        portable_kernel copy = kernel.clone();
        copy.specialize(shapes({{n * (t + 1), 5}, {7, 5}, {7}}));
        right += copy.output_shapes() == shapes({{n * (t + 1), 7}, {n * (t + 1), 7}});
        try {
          portable_kernel::parse(context(), bad);
        } catch (const error& e) {
          refused += e.kind() == error_kind::corrupted && std::string(e.what()).size() > 30;
        }
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 100);
  EXPECT_EQ(refused, 100);
}

TEST(portable_kernel, outlives_the_context_object) {
  auto bytes = write_kernel(*symbolic_dot_fusion(), "sample");
  auto kernel = std::make_unique<compiler_context>();
  portable_kernel survivor = portable_kernel::parse(*kernel, bytes);
  kernel.reset();
  EXPECT_EQ(survivor.symbol(), "sample");
}

}  // namespace
}  // namespace kiln::test
