// Sessions: one session serves any sizes; tests what instances share and what is reported.
#include "session/session.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <cmath>
#include <mutex>
#include <random>
#include <thread>

#include "aot/pipeline.hpp"
#include "ir/container/container.hpp"
#include "ir/invalid_shape.hpp"
#include "ir/ops/all.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t width = 24;

shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }

literal random(const shape& type, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(type.element_count()));
  for (double& v : values) v = normal(engine);
  return literal::from_doubles(type, values);
}

// tanh(x·w) for any number of rows.
program layer() {
  program p;
  const dim rows = dim::symbol("rows");
  p.symbols["rows"] = {1, 64, {}};
  module& m = p.main();
  value x = m.add_parameter("x", f32({rows, width})), w = m.add_constant(random(f32({width, width}), 1));
  m.set_outputs({m.add(elementwise{scalar_function::tanh}, {m.add(dot{}, {x, w})})}, {"y"});
  p.validate();
  return p;
}

class session_test : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1);  // where this user's keys are
    write_program(compile(layer()), file);
  }
  session_options options() {
    session_options o{.threads = 2};
    o.cache.folder = folder / "cache";
    o.compiling = compile_place::this_process;
    o.specialization = specialization::eager;
    o.observer = [this](const session_event& event) {
      std::lock_guard lock(mutex);
      if (auto* e = std::get_if<session_events::finalized>(&event)) hits += e->report.hits, misses += e->report.misses;
      if (auto* e = std::get_if<session_events::loaded>(&event))
        packed += e->report.prepared_made, found_packed += e->report.prepared_found;
      if (auto* e = std::get_if<session_events::finalizing>(&event)) last_progress = *e;
      if (auto* e = std::get_if<session_events::instance_dropped>(&event)) dropped.push_back(e->sizes.at("rows"));
      if (std::get_if<session_events::kernels_swapped>(&event)) ++swaps;
    };
    return o;
  }
  // Runs `rows` rows and compares with the reference.
  void expect_right(session& s, std::int64_t rows, unsigned seed = 7) {
    const literal x = random(f32({rows, width}), seed);
    const auto got = s.run(std::vector{x});
    const program reference = layer().bind({{"rows", rows}});
    const auto expected = evaluate(reference.main(), std::vector{x});
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0].type(), expected[0].type());
    for (std::int64_t i = 0; i < rows * width; ++i) ASSERT_NEAR(got[0].at(i), expected[0].at(i), 1e-5) << i;
  }

  scratch_folder folder;
  std::filesystem::path file = folder / "layer.kiln";
  std::mutex mutex;
  std::size_t hits = 0, misses = 0, packed = 0, found_packed = 0, swaps = 0;
  session_events::finalizing last_progress;
  std::vector<std::int64_t> dropped;
};

TEST_F(session_test, sizes_come_from_the_inputs) {
  session s(file, options());
  for (std::int64_t rows : {3, 8, 3, 17}) expect_right(s, rows);
  EXPECT_EQ(s.instances(), 3u);
  EXPECT_EQ(misses, 3u);
  EXPECT_EQ(last_progress.done, 1u);
  EXPECT_EQ(last_progress.total, 1u);
  auto held = s.at(dim_bindings{{"rows", 8}});
  EXPECT_EQ(held, s.at(dim_bindings{{"rows", 8}}));
  EXPECT_EQ(held->sizes().at("rows"), 8);

  session warm(file, options());
  expect_right(warm, 17);
  EXPECT_EQ(hits, 1u);
}

TEST_F(session_test, a_bounded_number_of_instances_is_kept) {
  session_options o = options();
  o.most_instances = 2;
  session s(file, o);
  auto first = s.at(dim_bindings{{"rows", 1}});
  s.at(dim_bindings{{"rows", 2}});
  // Used again, so the instance for 2 is now the oldest.
  s.at(dim_bindings{{"rows", 1}});
  s.at(dim_bindings{{"rows", 3}});
  EXPECT_EQ(dropped, std::vector<std::int64_t>{2});
  s.at(dim_bindings{{"rows", 4}});
  EXPECT_EQ(dropped, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(s.instances(), 2u);
  const literal x = random(f32({1, width}), 3);
  // An instance stays usable for those who hold it.
  EXPECT_EQ(first->run(std::vector{x})[0].type(), f32({1, width}));
}

TEST_F(session_test, instances_share_packed_weights_without_a_cache) {
  session_options o = options();
  o.cache.disabled = true;
  session s(file, o);
  s.at(dim_bindings{{"rows", 32}});
  ASSERT_EQ(packed, 1u);
  expect_right(s, 64);
  EXPECT_EQ(packed, 1u);
  EXPECT_EQ(found_packed, 1u);
}

TEST_F(session_test, threads_share_a_session) {
  session s(file, options());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t rows : {2, 5, 2}) expect_right(s, rows, t);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(misses, 2u);
}

TEST_F(session_test, kernels_are_tuned_while_runs_go_on) {
  session_options o = options();
  o.tuning = tuning_effort::quick;
  o.tuning_budget_ms = 60000;  // it ends as soon as everything has been tried
  session s(file, o);
  const literal x = random(f32({48, width}), 5);
  const auto first = s.run(std::vector{x});
  auto running = s.at(std::vector{x});
  running->finish_tuning();
  expect_right(s, 48);
  const tuning_progress progress = running->tuning();
  EXPECT_TRUE(progress.done);
  EXPECT_EQ(progress.tuned, 1u);
  EXPECT_EQ(swaps, progress.improved);
}

TEST_F(session_test, errors_name_the_dimension_the_input_and_the_file) {
  session s(file, options());
  auto message = [](auto&& work) -> std::string {
    try {
      work();
    } catch (const error& e) {
      return std::string(name(e.kind())) + ": " + e.what();
    }
    return "nothing";
  };
  EXPECT_THAT(message([&] { s.at(dim_bindings{}); }), HasSubstr("usage: dimension 'rows' is open"));
  EXPECT_THAT(message([&] { s.at(dim_bindings{{"rows", 65}}); }),
              HasSubstr("invalid_shape: dimension 'rows' = 65 is outside [1, 64]"));
  EXPECT_THAT(message([&] { s.run({}); }), HasSubstr("0 inputs were given, the model has 1"));
  EXPECT_THAT(message([&] { s.run(std::vector{random(f32({2, width + 1}), 1)}); }), HasSubstr("'x'"));
  EXPECT_THAT(message([&] { s.run(std::vector{random(f32({2, width, 1}), 1)}); }),
              HasSubstr("invalid_shape: input 'x'"));
  const literal halves = random({element_type::f16, {2, width}}, 1);
  EXPECT_THAT(message([&] { s.run(std::vector{halves}); }), HasSubstr("invalid_shape: input 'x'"));
  EXPECT_EQ(s.instances(), 0u);
  expect_right(s, 3);  // a refusal leaves the session as it was
  EXPECT_THAT(message([&] { s.at(dim_bindings{{"rows", 0}}); }), HasSubstr("invalid_shape: dimension 'rows' = 0"));
  EXPECT_EQ(s.instances(), 1u);
  expect_right(s, 3);
  EXPECT_EQ(s.instances(), 1u);
  EXPECT_THAT(message([&] { session(folder / "absent.kiln", options()); }), HasSubstr("missing_file"));
  EXPECT_THAT(message([&] { session(folder / "model.onnx", options()); }), HasSubstr("unsupported"));
  session_options cached = options();
  cached.only_cached = true;
  session lazy(file, cached);
  EXPECT_THAT(message([&] { lazy.at(dim_bindings{{"rows", 9}}); }), HasSubstr("not in the cache"));
}

// y = a + b, whose rows meet only if both dimensions are equal; a guard says so.
TEST_F(session_test, a_guard_that_fails_names_its_dimensions_and_their_values) {
  program p;
  const dim rows = dim::symbol("rows"), others = dim::symbol("others");
  p.symbols["rows"] = p.symbols["others"] = {1, 64, {}};
  module& m = p.main();
  value a = m.add_parameter("a", f32({rows})), b = m.add_parameter("b", f32({others}));
  m.set_outputs({m.add(elementwise{scalar_function::tanh}, {a}), m.add(elementwise{scalar_function::tanh}, {b})},
                {"y", "z"});
  p.guards.push_back({rows * 2, others, "the halves meet"});
  for (specialization way : {specialization::eager, specialization::lazy, specialization::off}) {
    session_options o = options();
    o.specialization = way;
    session s(compile(p.clone()), std::string("halves"), o);
    auto inputs = [](std::int64_t n, std::int64_t k) { return std::vector{random(f32({n}), 1), random(f32({k}), 2)}; };
    for (int round = 0; round < 2; ++round) {
      try {
        s.run(inputs(3, 7));
        FAIL() << "the guard was not checked";
      } catch (const error& e) {
        EXPECT_EQ(e.kind(), invalid_shape);
        EXPECT_THAT(e.what(), HasSubstr("dimensions '2*rows' = 6 and 'others' = 7 must be equal: the halves meet"));
        EXPECT_THAT(e.what(), HasSubstr("others = 7, rows = 3"));
      }
      EXPECT_EQ(s.run(inputs(3, 6))[1].type(), f32({6}));
      EXPECT_EQ(s.instances(), 1u);
    }
  }
}

// Blocks of a sequence are long expressions of its length.
TEST_F(session_test, a_guard_of_long_expressions_is_one_readable_line) {
  program p;
  const dim rows = dim::symbol("rows");
  p.symbols["rows"] = {1, 4096, {}};
  dim blocks = rows;
  for (std::int64_t i = 1; i < 8; ++i) blocks = dim::max(dim::min(blocks + 3 * i, 128 * (rows / (16 + i))), i);
  p.guards.push_back({rows, blocks, std::string(500, 'x')});
  module& m = p.main();
  m.set_outputs({m.add(elementwise{scalar_function::tanh}, {m.add_parameter("a", f32({rows}))})}, {"y"});
  try {
    p.bind({{"rows", 37}});
    FAIL() << "the guard was not checked";
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("dimension 'rows' = 37 does not fit the model: dimensions 'rows' = 37 and '"));
    EXPECT_LT(std::string(e.what()).size(), 320u);
  }
}

TEST_F(session_test, an_importer_brings_other_kinds_of_models) {
  session_options o = options();
  o.import = [](const std::filesystem::path&) { return compile(layer()); };
  session s(folder / "model.onnx", o);
  expect_right(s, 4);
}

}  // namespace
}  // namespace kiln::testing
