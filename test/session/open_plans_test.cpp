// Plans that are filled in from a template, beside plans that are made from a bound program.
#include "runtime/open_plans.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "aot/pipeline.hpp"
#include "ir/ops/all.hpp"
#include "ir/ops/choice.hpp"
#include "jit/compile_bytecode.hpp"
#include "runtime/executable.hpp"
#include "runtime/io_buffers.hpp"
#include "session/general_program.hpp"
#include "session/resources.hpp"

namespace kiln::testing {
namespace {

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq");

shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }

literal random(const shape& type, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(type.element_count()));
  for (double& v : values) v = normal(engine);
  return literal::from_doubles(type, values);
}

class open_plans_test : public ::testing::Test {
 protected:
  // A layer on rows that have static dims, and scores whose rows are open.
  void add_scores(module& m, value x) {
    value w = m.add_constant(random(f32({24, 24}), 1));
    value flat = m.add(dot{}, {m.add(reshape{{batch * seq, 24}}, {x}), w});
    value h = m.add(reshape{{batch, seq, 24}}, {m.add(elementwise{scalar_function::tanh}, {flat})});
    value s = m.add(softmax{-1, false}, {m.add(dot{}, {h, m.add(transpose{{0, 2, 1}}, {x})})});
    m.set_outputs({m.add(dot{}, {s, x}), w}, {"y", "w"});
  }

  program source() {
    program p;
    p.symbols = {{"batch", {1, 64, {}}}, {"seq", {0, 512, {}}}};
    add_scores(p.main(), p.main().add_parameter("x", f32({batch, seq, 24})));
    return p;
  }

  // Compiles `p` and finalizes the kernels that serve many sizes.
  void open(program p) {
    portable = compile(std::move(p));
    session_options options{.threads = 2};
    options.compiling = compile_place::this_process;
    options.cache.disabled = true;
    chosen_device chosen = choose_device("host", "native", 2);
    with = std::make_unique<session_resources>(std::move(options), std::move(chosen), "model", nullptr, "");
    kernels.emplace(portable, processor::cpu);
    kernels->finalize({{"batch", 1}, {"seq", 1}}, with->compiling(), [](const std::string& text) { FAIL() << text; });
    plans.emplace(general_program(portable, *kernels, with->compiling()), with->device(), with->planning());
  }

  std::vector<literal> run_bound(const dim_bindings& sizes, std::span<const literal> inputs) {
    const program native = compile_bytecode(portable.bind(sizes), with->compiling());
    return load(native, with->device(), with->planning()).evaluate(inputs);
  }

  void compare(const dim_bindings& sizes, std::span<const literal> inputs) {
    auto planned = plans->at(sizes);
    ASSERT_TRUE(planned);
    const auto expected = run_bound(sizes, inputs), got = executable(planned, with->device()).evaluate(inputs);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t o = 0; o < got.size(); ++o) {
      ASSERT_EQ(got[o].type(), expected[o].type());
      for (std::int64_t i = 0; i < got[o].type().element_count(); ++i)
        ASSERT_NEAR(got[o].at(i), expected[o].at(i), 1e-4) << o << " " << i;
    }
  }

  program portable;
  std::unique_ptr<session_resources> with;
  std::optional<ranged_kernels> kernels;
  std::optional<open_plans> plans;
};

TEST_F(open_plans_test, plans_of_all_sizes_run_right) {
  open(source());
  for (std::int64_t b : {1, 2, 5, 16, 33})
    for (std::int64_t s : {1, 3, 31, 64, 100})
      compare({{"batch", b}, {"seq", s}}, std::vector{random(f32({b, s, 24}), static_cast<unsigned>(b + s))});
}

TEST_F(open_plans_test, a_plan_outlives_its_template) {
  open(source());
  auto planned = plans->at({{"batch", 3}, {"seq", 17}});
  plans.reset();
  ASSERT_TRUE(planned);
  const std::vector inputs{random(f32({3, 17, 24}), 1)};
  const auto expected = run_bound({{"batch", 3}, {"seq", 17}}, inputs);
  const auto got = executable(planned, with->device()).evaluate(inputs);
  for (std::int64_t i = 0; i < got[0].type().element_count(); ++i) ASSERT_NEAR(got[0].at(i), expected[0].at(i), 1e-4);
}

// Few pixels of an image are summed directly, many by Winograd's products, which pack the weights in another way (on
// targets that have them).
TEST_F(open_plans_test, weights_are_packed_for_the_sizes_that_come) {
  const auto convolved = [] {
    program p;
    p.symbols = {{"batch", {1, 64, {}}}, {"seq", {1, 512, {}}}};
    module& m = p.main();
    const value x = m.add_parameter("x", f32({batch, 32, seq, seq})),
                w = m.add_constant(random(f32({64, 32, 3, 3}), 1));
    m.set_outputs({m.add(convolution{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, {x, w})}, {"y"});
    return p;
  };
  const auto packed = [&](std::int64_t b, std::int64_t s) {
    const dim_bindings sizes{{"batch", b}, {"seq", s}};
    compare(sizes, std::vector{random(f32({b, 32, s, s}), static_cast<unsigned>(b + s))});
    return plans->at(sizes)->report.prepared_bytes;
  };
  constexpr std::size_t direct = 64 * 32 * 9 * 4, transformed = 64 * 32 * 16 * 4;
  open(convolved());
  EXPECT_EQ(packed(1, 2), direct);
  EXPECT_EQ(packed(2, 1), direct);
  EXPECT_EQ(packed(4, 20), direct + transformed);
  EXPECT_EQ(packed(1, 1), direct + transformed);
  plans.reset(), kernels.reset(), with.reset();
  open(convolved());
  EXPECT_EQ(packed(4, 20), transformed);
}

// These are explained by program::bind, or have another structure.
// One plan goes on to other sizes: memory, arguments and constants stay where they are. Numbers of positions are
// written for all rows that there is room for.
TEST_F(open_plans_test, a_series_goes_on_to_other_sizes) {
  program p;
  p.symbols = {{"seq", {1, 512, {}}}};
  module& m = p.main();
  value x = m.add_parameter("x", f32({2, seq, 24}));
  value positions = m.add(convert{element_type::f32}, {m.add(iota{element_type::i64, {seq}, 0}, {})});
  value s = m.add(softmax{-1, false}, {m.add(dot{}, {x, m.add(transpose{{0, 2, 1}}, {x})})});
  s = m.add(elementwise{scalar_function::mul}, {s, m.add(broadcast{{2, seq, seq}}, {positions})});
  m.set_outputs({m.add(dot{}, {s, x})}, {"y"});
  open(std::move(p));
  auto series = plans->series({{"seq", 7}}, {{"seq", 64}});
  ASSERT_TRUE(series);
  const executable running(series->plan(), with->device());
  execution_context context = running.make_context();
  for (std::int64_t n : {7, 8, 9, 31, 64, 3, 1}) {
    ASSERT_TRUE(plans->move(*series, {{"seq", n}})) << n;
    const std::vector inputs{random(f32({2, n, 24}), static_cast<unsigned>(n))};
    io_buffers tensors(running);
    tensors.upload(inputs);
    running.run(context, tensors.inputs(), tensors.outputs());
    const auto got = tensors.download(), expected = run_bound({{"seq", n}}, inputs);
    ASSERT_EQ(got[0].type(), expected[0].type());
    for (std::int64_t i = 0; i < got[0].type().element_count(); ++i)
      ASSERT_NEAR(got[0].at(i), expected[0].at(i), 1e-3 + 1e-4 * std::abs(expected[0].at(i))) << n << " " << i;
  }
  EXPECT_FALSE(plans->move(*series, {{"seq", 65}}));   // the room
  EXPECT_FALSE(plans->move(*series, {{"seq", 513}}));  // the range
  EXPECT_TRUE(plans->move(*series, {{"seq", 64}}));
}

// Kernels of one batch beside kernels for all lengths. Tables of the latter still name the batch.
TEST_F(open_plans_test, kernels_may_be_exact_for_some_dims) {
  program p = source();
  module& m = p.main();
  value x = m.parameters()[0];
  const value first = m.add(slice{{0, 0, 0}, {batch, 1, 24}, {1, 1, 1}}, {x});
  std::vector<value> outputs = m.outputs();
  outputs.push_back(
      m.add(elementwise{scalar_function::tanh}, {m.add(dot{}, {m.add(reshape{{batch, 24}}, {first}), outputs[1]})}));
  m.set_outputs(std::move(outputs), {"y", "w", "z"});
  open(std::move(p));
  jit_report report;
  const program native = general_program(portable, *kernels, with->compiling(), &report, {{"batch", 3}});
  EXPECT_EQ(native.symbols.at("batch").max, 3);
  EXPECT_FALSE(report.kernels.empty());
  plans.emplace(native.clone(), with->device(), with->planning());
  for (std::int64_t s : {1, 5, 40}) compare({{"batch", 3}, {"seq", s}}, std::vector{random(f32({3, s, 24}), 5)});
  EXPECT_FALSE(plans->at({{"batch", 2}, {"seq", 5}}));
}

// Launches of row kernels depend on the number of rows.
TEST_F(open_plans_test, other_rows_need_another_plan) {
  open(source());
  auto series = plans->series({{"batch", 2}, {"seq", 5}}, {{"batch", 8}, {"seq", 8}});
  ASSERT_TRUE(series);
  EXPECT_TRUE(plans->move(*series, {{"batch", 2}, {"seq", 5}}));
  EXPECT_FALSE(plans->move(*series, {{"batch", 2}, {"seq", 6}}));
  EXPECT_FALSE(plans->series({{"batch", 9}, {"seq", 5}}, {{"batch", 8}, {"seq", 8}}));
}

TEST_F(open_plans_test, other_sizes_have_no_plan) {
  program p = source();
  p.guards.push_back({batch, seq, "test"});
  open(std::move(p));
  EXPECT_TRUE(plans->at({{"batch", 7}, {"seq", 7}}));
  EXPECT_FALSE(plans->at({{"batch", 7}, {"seq", 8}}));                // the guard
  EXPECT_FALSE(plans->at({{"batch", 65}, {"seq", 65}}));              // the range
  EXPECT_FALSE(plans->at({{"batch", 7}}));                            // a dimension is missing
  EXPECT_FALSE(plans->at({{"batch", 7}, {"sequence", 7}}));           // another one is not
  EXPECT_FALSE(plans->at({{"batch", 7}, {"seq", 7}, {"width", 7}}));  // there is no such dimension
}

TEST_F(open_plans_test, tensors_without_elements_have_plans) {
  open(source());
  for (std::int64_t s : {0, 1, 0}) compare({{"batch", 2}, {"seq", s}}, std::vector{random(f32({2, s, 24}), 5)});
}

// A cache that has no rows yet, and what exporters write with `seq - 1`: at one position, these tensors are empty.
TEST_F(open_plans_test, kernels_read_tensors_without_elements) {
  program p;
  p.symbols = {{"past", {0, 64, {}}}, {"seq", {0, 64, {}}}};
  const dim past = dim::symbol("past");
  module& m = p.main();
  value cache = m.add_parameter("cache", f32({2, past, 24})), x = m.add_parameter("x", f32({2, seq, 24}));
  value all = m.add(concat{1}, {cache, x});
  value scores = m.add(softmax{-1, false}, {m.add(dot{}, {x, m.add(transpose{{0, 2, 1}}, {all})})});
  value across = m.add(concat{2}, {m.add(transpose{{0, 2, 1}}, {cache}), m.add(transpose{{0, 2, 1}}, {x})});
  value sums = m.add(reduce{reduction_kind::sum, {1}}, {cache});
  value padded = m.add(pad{{0, 1, 0}, {0, 1, 0}, pad_mode::constant_, 0.5}, {x});
  value across_padded = m.add(pad{{0, 0, 1}, {0, 0, 2}, pad_mode::constant_, 0.5}, {m.add(transpose{{0, 2, 1}}, {x})});
  m.set_outputs({m.add(dot{}, {scores, all}), across, sums, padded, across_padded}, {"y", "a", "s", "p", "q"});
  open(std::move(p));
  for (std::int64_t n : {0, 1, 5})
    for (std::int64_t s : {0, 1, 7})
      compare({{"past", n}, {"seq", s}}, std::vector{random(f32({2, n, 24}), 1), random(f32({2, s, 24}), 2)});
}

TEST_F(open_plans_test, each_way_of_a_choice_has_its_plans) {
  program p;
  p.symbols = {{"flag", {0, 1, {}}}, {"batch", {1, 64, {}}}};
  module& m = p.main();
  auto body = [&](const char* name, scalar_function function) {
    module& made = p.add_module(name);
    value x = made.add_parameter("x", f32({batch, 24}));
    made.set_outputs({made.add(elementwise{function}, {x})}, {"y"});
    return &made;
  };
  value x = m.add_parameter("x", f32({batch, 24}));
  value y = m.add(choice{{dim::symbol("flag")}}, {x},
                  {body("then", scalar_function::tanh), body("else", scalar_function::exp)});
  m.set_outputs({y}, {"y"});
  open(std::move(p));
  for (std::int64_t flag : {0, 1, 0})
    for (std::int64_t b : {1, 9}) compare({{"flag", flag}, {"batch", b}}, std::vector{random(f32({b, 24}), 3)});
}

}  // namespace
}  // namespace kiln::testing
