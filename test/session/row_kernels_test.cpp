// One session serves any number of rows: an unseen size compiles nothing, and every output is correct.
#include "session/row_kernels.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <random>

#include "aot/pipeline.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "session/session.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq");

shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }

literal random(const shape& type, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, 0.5);
  std::vector<double> values(static_cast<std::size_t>(type.element_count()));
  for (double& v : values) v = normal(engine);
  return literal::from_doubles(type, values);
}

value add_bias(module& m, value v, std::int64_t channels, unsigned seed) {
  return m.add(elementwise{scalar_function::add},
               {v, m.add(broadcast{v.type().dims}, {m.add_constant(random(f32({channels}), seed))})});
}

value relu(module& m, value v) {
  value zero =
      m.add(broadcast{v.type().dims}, {m.add_constant(literal::from_doubles(f32({}), std::vector<double>{0}))});
  return m.add(elementwise{scalar_function::max}, {v, zero});
}

// Two layers with a softmax. Its kernels are a product, pointwise work and a softmax over rows.
program perceptron() {
  program p;
  p.symbols["batch"] = {0, 300, {}};
  module& m = p.main();
  value x = m.add_parameter("x", f32({batch, 20}));
  value h = relu(m, add_bias(m, m.add(dot{}, {x, m.add_constant(random(f32({20, 33}), 1))}), 33, 2));
  value y = m.add(dot{}, {h, m.add_constant(random(f32({33, 7}), 3))});
  m.set_outputs({m.add(softmax{1}, {y}), h}, {"y", "h"});
  return p;
}

// A convolution, pooling, a residual, the mean over the image and a product.
program network() {
  program p;
  p.symbols["batch"] = {1, 64, {}};
  module& m = p.main();
  value x = m.add_parameter("x", f32({batch, 3, 9, 9}));
  const convolution same{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, tensor_layout::channels_first};
  value a = relu(m, m.add(same, {x, m.add_constant(random(f32({8, 3, 3, 3}), 1))}));
  value b = m.add(same, {a, m.add_constant(random(f32({8, 8, 3, 3}), 2))});
  value c = m.add(elementwise{scalar_function::add}, {a, b});
  pooling pool;
  pool.window = pool.strides = {2, 2};
  pool.dilations = {1, 1};
  pool.pads_begin = pool.pads_end = {0, 0};
  value mean = m.add(reduce{reduction_kind::mean, {2, 3}}, {m.add(pool, {c})});
  m.set_outputs({m.add(dot{}, {mean, m.add_constant(random(f32({8, 5}), 3))})}, {"y"});
  return p;
}

// A transformer's feed-forward layers. The rows are the tokens of a batch of sentences.
program tokens() {
  program p;
  p.symbols = {{"batch", {1, 16, {}}}, {"seq", {1, 64, {}}}};
  module& m = p.main();
  value x = m.add_parameter("x", f32({batch, seq, 24}));
  value n = add_bias(m, m.add(normalize{{2}}, {x}), 24, 1);
  value flat = m.add(reshape{{batch * seq, 24}}, {n});
  value h = m.add(elementwise{scalar_function::tanh}, {m.add(dot{}, {flat, m.add_constant(random(f32({24, 48}), 2))})});
  value y = m.add(reshape{{batch, seq, 24}}, {m.add(dot{}, {h, m.add_constant(random(f32({48, 24}), 3))})});
  m.set_outputs({m.add(elementwise{scalar_function::add}, {x, y})}, {"y"});
  return p;
}

class row_kernel_sessions : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1); }
  session_options options() {
    session_options o{.threads = 2};
    o.cache.folder = folder / "cache";
    o.compiling = compile_place::this_process;
    o.specialization = specialization::off;
    o.observer = [this](const session_event& event) {
      if (auto* e = std::get_if<session_events::finalized>(&event)) hits += e->report.hits, misses += e->report.misses;
    };
    return o;
  }

  void expect_right(session& s, const program& source, const dim_bindings& sizes) {
    const program reference = source.bind(sizes);
    std::vector<literal> inputs;
    for (value v : reference.main().parameters())
      inputs.push_back(random(v.type(), 7 + static_cast<unsigned>(inputs.size())));
    const auto expected = evaluate(reference.main(), inputs);
    const auto got = s.run(inputs);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t o = 0; o < got.size(); ++o) {
      ASSERT_EQ(got[o].type(), expected[o].type());
      for (std::int64_t i = 0; i < got[o].type().element_count(); ++i) {
        // Infinities, too, must be equal.
        if (got[o].at(i) == expected[o].at(i)) continue;
        ASSERT_NEAR(got[o].at(i), expected[o].at(i), 2e-5) << reference.main().str() << i;
      }
    }
  }

  // Opens the model and runs it with the first sizes, then with the others, which must compile nothing.
  void expect_no_compilation(const program& source, const std::vector<dim_bindings>& sizes) {
    session s(compile(source.clone()), std::string("model"), options());
    expect_right(s, source, sizes.front());
    EXPECT_GT(misses, 0u);
    misses = 0;
    for (const dim_bindings& other : std::span(sizes).subspan(1)) expect_right(s, source, other);
    EXPECT_EQ(misses, 0u);
  }

  scratch_folder folder;
  std::size_t hits = 0, misses = 0;
};

std::vector<dim_bindings> batches(std::initializer_list<std::int64_t> list) {
  std::vector<dim_bindings> result;
  for (std::int64_t size : list) result.push_back({{"batch", size}});
  return result;
}

TEST_F(row_kernel_sessions, a_perceptron_of_any_batch) {
  expect_no_compilation(perceptron(), batches({5, 1, 2, 15, 16, 17, 33, 0, 255, 256, 273, 300}));
}

TEST_F(row_kernel_sessions, a_convolutional_network_of_any_batch) {
  expect_no_compilation(network(), batches({2, 1, 3, 17, 64}));
}

TEST_F(row_kernel_sessions, tokens_of_any_batch_and_length) {
  expect_no_compilation(tokens(), {{{"batch", 2}, {"seq", 9}},
                                   {{"batch", 1}, {"seq", 1}},
                                   {{"batch", 3}, {"seq", 17}},
                                   {{"batch", 16}, {"seq", 64}}});
}

TEST_F(row_kernel_sessions, attention_of_open_length_is_compiled_once) {
  program p;
  p.symbols = {{"batch", {1, 16, {}}}, {"seq", {0, 64, {}}}};
  module& m = p.main();
  value x = m.add_parameter("x", f32({batch, 2, seq, 8}));
  m.set_outputs({m.add(elementwise{scalar_function::tanh}, {m.add(attention{0.5}, {x, x, x})})}, {"y"});
  session s(compile(p.clone()), std::string("model"), options());
  const std::vector<std::pair<dim_bindings, bool>> steps{
      {{{"batch", 2}, {"seq", 9}}, true},   {{{"batch", 5}, {"seq", 9}}, false},  {{{"batch", 16}, {"seq", 9}}, false},
      {{{"batch", 2}, {"seq", 33}}, false}, {{{"batch", 3}, {"seq", 33}}, false}, {{{"batch", 3}, {"seq", 0}}, false}};
  for (const auto& [sizes, compiles] : steps) {
    misses = 0;
    expect_right(s, p, sizes);
    EXPECT_EQ(misses > 0, compiles) << sizes.at("batch") << ", " << sizes.at("seq");
  }
}

// Transposes, softmax, products and sums along an open length, with a batch that is not the leading axis.
program lengths() {
  program p;
  p.symbols = {{"batch", {1, 16, {}}}, {"seq", {0, 64, {}}}};
  module& m = p.main();
  value x = m.add_parameter("x", f32({seq, batch, 24}));
  value by_batch = m.add(transpose{{1, 0, 2}}, {x});
  value weights = m.add(softmax{2}, {m.add(dot{false, true}, {by_batch, by_batch})});
  value mixed = m.add(dot{}, {weights, by_batch});
  value joined = m.add(concat{1}, {mixed, by_batch});
  value largest = m.add(reduce{reduction_kind::max, {1}}, {m.add(transpose{{0, 2, 1}}, {joined})});
  m.set_outputs({joined, largest, m.add(reduce{reduction_kind::max, {0, 1}}, {x})}, {"y", "z", "of all"});
  return p;
}

TEST_F(row_kernel_sessions, open_lengths_compile_nothing) {
  expect_no_compilation(lengths(), {{{"batch", 2}, {"seq", 9}},
                                    {{"batch", 1}, {"seq", 1}},
                                    {{"batch", 3}, {"seq", 17}},
                                    {{"batch", 16}, {"seq", 64}}});
}

TEST_F(row_kernel_sessions, empty_tensors_are_specialized) {
  session s(compile(lengths()), std::string("model"), options());
  expect_right(s, lengths(), {{"batch", 2}, {"seq", 5}});
  expect_right(s, lengths(), {{"batch", 2}, {"seq", 0}});
}

TEST_F(row_kernel_sessions, kernels_that_mix_rows_are_compiled_for_all_sizes) {
  program p;
  p.symbols["batch"] = {1, 64, {}};
  module& m = p.main();
  value x = m.add_parameter("x", f32({batch, 24}));
  value y = m.add(dot{}, {x, m.add_constant(random(f32({24, 24}), 1))});
  m.set_outputs({m.add(softmax{0}, {y})}, {"y"});
  session s(compile(p.clone()), std::string("model"), options());
  for (std::int64_t size : {3, 8}) {
    misses = 0;
    expect_right(s, p, {{"batch", size}});
    // Three versions of the product, and the softmax.
    EXPECT_EQ(misses, size == 3 ? 4u : 0u);
  }
}

TEST_F(row_kernel_sessions, the_next_process_finds_the_kernels_in_the_cache) {
  const program source = perceptron();
  {
    session s(compile(source.clone()), std::string("model"), options());
    expect_right(s, source, {{"batch", 4}});
  }
  misses = 0;
  session_options cached = options();
  cached.only_cached = true;
  session s(compile(source.clone()), std::string("model"), cached);
  expect_right(s, source, {{"batch", 29}});
  EXPECT_EQ(misses, 0u);
}

TEST_F(row_kernel_sessions, blocks_of_all_sizes_read_the_same_packed_weights) {
  const std::int64_t in = 256, out = 384;
  for (bool transposed : {false, true}) {
    program p;
    p.symbols["batch"] = {1, 300, {}};
    module& m = p.main();
    dot product{};
    product.transpose_b = transposed;
    const shape weights = transposed ? f32({out, in}) : f32({in, out});
    m.set_outputs({m.add(product, {m.add_parameter("x", f32({batch, in})), m.add_constant(random(weights, 1))})},
                  {"y"});
    session_options o = options();
    o.cache.folder = folder / (transposed ? "transposed" : "as_it_is");
    {
      session s(compile(p.clone()), std::string("model"), o);
      // One, four, sixteen and sixty-four rows.
      for (std::int64_t rows : {1, 4, 16, 64, 93}) expect_right(s, p, {{"batch", rows}});
    }
    std::size_t packed = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(o.cache.folder))
      packed += entry.is_regular_file() && entry.file_size() >= weights.bytes();
    EXPECT_EQ(packed, 1u) << transposed;
  }
}

TEST_F(row_kernel_sessions, tuning_is_refused) {
  session_options o = options();
  o.tuning = tuning_effort::quick;
  try {
    session(compile(perceptron()), std::string("model"), o);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::usage);
    EXPECT_THAT(e.what(), HasSubstr("tuning specializes kernels"));
  }
}

}  // namespace
}  // namespace kiln::testing
