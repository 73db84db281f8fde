// Sessions with specialization::lazy: the first sizes are compiled exactly, later ones share general kernels, and sizes
// that run often get exact kernels from the background.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "aot/pipeline.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "session/session.hpp"
#include "test/support/scratch_folder.hpp"

namespace kiln::testing {
namespace {

using namespace std::chrono_literals;

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq");

shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }

literal random(const shape& type, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(type.element_count()));
  for (double& v : values) v = normal(engine);
  return literal::from_doubles(type, values);
}

// Scores of a sentence with itself, and a layer on them: the open dims are inside the rows.
program scores() {
  program p;
  p.symbols = {{"batch", {1, 16, {}}}, {"seq", {1, 512, {}}}};
  module& m = p.main();
  value x = m.add_parameter("x", f32({batch, seq, 24}));
  value flat = m.add(dot{}, {m.add(reshape{{batch * seq, 24}}, {x}), m.add_constant(random(f32({24, 24}), 1))});
  value h = m.add(reshape{{batch, seq, 24}}, {flat});
  value turned = m.add(transpose{{0, 2, 1}}, {x});
  value s = m.add(softmax{-1, false}, {m.add(dot{}, {h, turned})});
  m.set_outputs({m.add(elementwise{scalar_function::tanh}, {m.add(dot{}, {s, x})})}, {"y"});
  return p;
}

class lazy_sessions : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CONFIG_HOME", (folder / "config").c_str(), 1); }

  session_options options() {
    session_options o{.threads = 1};
    o.cache.folder = folder / "cache";
    o.compiling = compile_place::this_process;
    o.observer = [this](const session_event& event) {
      std::lock_guard lock(mutex);
      if (auto* e = std::get_if<session_events::finalized>(&event)) misses += e->report.misses;
      if (std::get_if<session_events::kernels_swapped>(&event)) ++swaps;
    };
    return o;
  }

  std::unique_ptr<session> open(session_options o) {
    return std::make_unique<session>(compile(source.clone()), std::string("model"), std::move(o));
  }

  // Runs with these sizes and compares with the reference. Returns how many kernels were compiled for that.
  std::size_t run(session& s, std::int64_t b, std::int64_t n) {
    const std::size_t before = misses;
    const program reference = source.bind({{"batch", b}, {"seq", n}});
    const std::vector<literal> inputs{random(reference.main().parameters()[0].type(), 7)};
    const auto expected = evaluate(reference.main(), inputs), got = s.run(inputs);
    EXPECT_EQ(got[0].type(), expected[0].type());
    for (std::int64_t i = 0; i < got[0].type().element_count(); ++i)
      EXPECT_NEAR(got[0].at(i), expected[0].at(i), 1e-4) << i;
    return misses - before;
  }

  static void await_background(const session& s) {
    for (auto end = std::chrono::steady_clock::now() + 60s; !s.idle() && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(s.idle());
  }

  scratch_folder folder;
  const program source = scores();
  std::mutex mutex;
  std::size_t misses = 0, swaps = 0;
};

TEST_F(lazy_sessions, later_sizes_share_kernels_that_are_compiled_once) {
  auto s = open(options());
  EXPECT_GT(run(*s, 2, 9), 0u);
  EXPECT_FALSE(s->at({{"batch", 2}, {"seq", 9}})->lazy().serves_many());
  EXPECT_GT(run(*s, 1, 20), 0u);  // the general kernels
  for (std::int64_t n : {3, 33, 70, 128}) EXPECT_EQ(run(*s, 1 + n % 3, n), 0u) << n;
  EXPECT_TRUE(s->at({{"batch", 1}, {"seq", 70}})->lazy().serves_many());
}

TEST_F(lazy_sessions, general_kernels_are_made_in_the_background_once_a_model_runs_again) {
  auto s = open(options());
  run(*s, 2, 9);
  EXPECT_TRUE(s->idle());
  run(*s, 2, 9);
  await_background(*s);
  EXPECT_EQ(run(*s, 1, 20), 0u);
}

TEST_F(lazy_sessions, what_the_cache_has_is_used) {
  {
    auto s = open(options());
    run(*s, 2, 9);
    run(*s, 1, 20);
  }
  auto s = open(options());
  EXPECT_EQ(run(*s, 1, 31), 0u);
  EXPECT_TRUE(s->at({{"batch", 1}, {"seq", 31}})->lazy().serves_many());
  EXPECT_EQ(run(*s, 2, 9), 0u);
  // A session that has general kernels starts with them: that takes microseconds.
  EXPECT_TRUE(s->at({{"batch", 2}, {"seq", 9}})->lazy().serves_many());
  auto first = open(options());
  EXPECT_EQ(run(*first, 2, 9), 0u);
  EXPECT_FALSE(first->at({{"batch", 2}, {"seq", 9}})->lazy().serves_many());
  session_options only = options();
  only.only_cached = true;
  auto cached = open(std::move(only));
  EXPECT_EQ(run(*cached, 3, 40), 0u);
}

TEST_F(lazy_sessions, sizes_that_run_often_get_kernels_of_their_own) {
  auto s = open(options());
  run(*s, 1, 3);
  const dim_bindings sizes{{"batch", 4}, {"seq", 300}};
  auto hot = s->at(sizes);
  ASSERT_TRUE(hot->lazy().serves_many());
  EXPECT_EQ(hot->lazy().choice(), kernel_choice::none_yet);
  const std::vector<literal> inputs{random(hot->bound().main().parameters()[0].type(), 7)};
  const auto expected = hot->run(inputs);
  for (auto end = std::chrono::steady_clock::now() + 100s; std::chrono::steady_clock::now() < end;) {
    const auto got = hot->run(inputs);
    for (std::int64_t i = 0; i < got[0].type().element_count(); i += 97)
      ASSERT_NEAR(got[0].at(i), expected[0].at(i), 1e-4) << i;
    if (hot->lazy().choice() == kernel_choice::general || hot->lazy().choice() == kernel_choice::specialized) break;
  }
  EXPECT_TRUE(hot->lazy().choice() == kernel_choice::general || hot->lazy().choice() == kernel_choice::specialized);
  EXPECT_EQ(swaps, hot->lazy().choice() == kernel_choice::specialized ? 1u : 0u);
  run(*s, 4, 300);
}

TEST_F(lazy_sessions, another_runner_follows_the_choice) {
  auto s = open(options());
  run(*s, 1, 3);
  auto i = s->at({{"batch", 2}, {"seq", 40}});
  const std::vector<literal> inputs{random(i->bound().main().parameters()[0].type(), 7)};
  const auto expected = i->run(inputs);
  i->specialize([] { return false; });
  EXPECT_EQ(i->lazy().choice(), kernel_choice::on_trial);
  i->lazy().choose(kernel_choice::specialized);
  EXPECT_EQ(swaps, 1u);
  const auto got = i->run(inputs);
  for (std::int64_t k = 0; k < got[0].type().element_count(); ++k) ASSERT_NEAR(got[0].at(k), expected[0].at(k), 1e-4);
}

TEST_F(lazy_sessions, a_session_may_end_while_kernels_are_compiled) {
  session_options o = options();
  o.cache.disabled = true;
  auto s = open(std::move(o));
  run(*s, 2, 9);
  run(*s, 2, 9);
  s.reset();
}

TEST_F(lazy_sessions, without_open_dimensions_there_is_nothing_to_share) {
  session s(compile(source.bind({{"batch", 2}, {"seq", 9}})), std::string("model"), options());
  auto i = s.at(dim_bindings{});
  EXPECT_FALSE(i->lazy().serves_many());
}

}  // namespace
}  // namespace kiln::testing
