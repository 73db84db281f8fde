// Tuning on the host, with a compiler that can be made to produce wrong, broken, slow or faster kernels.
#include "jit/tuning/tuner.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "aot/pipeline.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "jit/cache/kernel_cache.hpp"
#include "jit/deadline.hpp"
#include "jit/targets.hpp"
#include "jit/tuning/device_class.hpp"
#include "jit/tuning/replace_kernels.hpp"
#include "jit/tuning/tuned_runner.hpp"
#include "runtime/host_device.hpp"
#include "test/support/host_row.hpp"
#include "test/support/scratch_folder.hpp"

using namespace kiln;

namespace {

constexpr std::int64_t side = 160;

shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }

// One product of [side, side] with constant weights.
program product() {
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", f32({side, side}));
  m.set_outputs({m.add(dot{}, {x, m.add_constant(random_tensor(f32({side, side}), 1))})}, {"y"});
  return compile(std::move(p));
}

// Two products of different shapes. The operations between them prevent the optimizer from composing them to one.
program two_products() {
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", f32({side, side}));
  value h = m.add(dot{}, {x, m.add_constant(random_tensor(f32({side, 2 * side}), 1))});
  value t = m.add(elementwise{scalar_function::tanh}, {h});
  m.set_outputs({m.add(dot{}, {t, m.add_constant(random_tensor(f32({2 * side, 32}), 2))})}, {"y"});
  return compile(std::move(p));
}

// A kernel with the same tensors as product(), but cheaper and wrong.
program sum() {
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", f32({side, side}));
  m.set_outputs({m.add(elementwise{scalar_function::add}, {x, m.add_constant(random_tensor(f32({side, side}), 1))})},
                {"y"});
  return compile(std::move(p));
}

const candidate_result* find(const tuning_session& s, candidate_outcome outcome) {
  auto found = std::ranges::find(s.candidates, outcome, &candidate_result::outcome);
  return found == s.candidates.end() ? nullptr : &*found;
}

class tuner_test : public ::testing::Test {
 protected:
  void SetUp() override {
    jit.target = find_target(test::host_row);
    jit.kernel_limit = std::chrono::milliseconds(20000);
    cache_options c;
    c.folder = folder / "cache";
    cache = kernel_cache::open(c);
    jit.cache = cache.get();
    open_records();
    options.effort = tuning_effort::quick;
  }
  void open_records() {
    records = std::make_unique<tuning_records>(
        tuning_records_options{.folder = cache->folder(),
                               .device_class = device_class(device->info(), jit.target),
                               .compiler = this_compiler(target_family::cpu)});
  }
  // Returns the native code of a program's only kernel.
  native_bytes code_of(const program& p, const kernel_configuration& configuration = {}) {
    jit_options plain = jit;
    plain.configuration = configuration;
    kernel_compiler compiler(p, plain);
    return compiler.compile(group_code_objects(p).list.at(0), configuration);
  }
  kernel_tuning tune(const program& p, double until_ms = INFINITY) {
    return tuner(p, device, jit, records.get(), options).tune(0, until_ms);
  }

  kiln::testing::scratch_folder folder;
  jit_options jit;
  std::shared_ptr<host_device> device = std::make_shared<host_device>(1);
  std::unique_ptr<kernel_cache> cache;
  std::unique_ptr<tuning_records> records;
  tuner_options options;
};

// Repeats its work, so that it is as slow as requested, and correct.
native_bytes repeated(const native_bytes& once, int times) {
  native_kernel kernel = deserialize_native_kernel(*once);
  std::vector<launch> work;
  std::ranges::copy_if(kernel.launches, std::back_inserter(work), [](const launch& l) { return !l.prepare; });
  for (int i = 1; i < times; ++i) kernel.launches.insert(kernel.launches.end(), work.begin(), work.end());
  return std::make_shared<const std::vector<std::byte>>(serialize(kernel));
}

}  // namespace

TEST_F(tuner_test, what_it_finds_is_a_record_and_the_next_tuner_knows_it) {
  program p = product();
  kernel_tuning first = tune(p);
  EXPECT_EQ(first.outcome, kernel_tuning::state::tuned);
  EXPECT_TRUE(first.session.complete);
  EXPECT_GE(first.session.candidates.size(), 2u);
  EXPECT_LE(first.session.candidates.size(), 8u);
  EXPECT_GT(first.session.default_ms, 0);
  EXPECT_LE(first.session.winner_ms, first.session.default_ms);
  kernel_tuning second = tune(p);
  EXPECT_EQ(second.outcome, kernel_tuning::state::known);
  EXPECT_EQ(second.session, first.session);
  options.again = true;
  EXPECT_EQ(tune(p).session.generation, 2);
  options.again = false;
  options.effort = tuning_effort::full;
  // More candidates than were tried.
  EXPECT_EQ(tune(p).outcome, kernel_tuning::state::tuned);
}

TEST_F(tuner_test, a_better_kernel_wins_is_checked_and_is_what_compile_bytecode_then_takes) {
  program p = product();
  native_bytes good = code_of(p), slow = repeated(good, 4);
  options.compile = [&](const kernel_group&, const kernel_configuration& c) { return c.empty() ? slow : good; };
  kernel_tuning t = tune(p);
  ASSERT_TRUE(t.winner) << to_text({identify(t.payload, {}, {}, ""), {t.session}});
  EXPECT_EQ(t.winner, good);
  EXPECT_FALSE(t.session.winner.empty());
  EXPECT_GT(t.gain(), 2);
  EXPECT_EQ(t.session.error, 0);
  EXPECT_NE(find(t.session, candidate_outcome::duplicate), nullptr);  // all candidates are the same code here

  jit.records = records.get();
  jit.only_if_cached = true;  // no compiler is needed
  jit_report report;
  compile_bytecode(p, jit, &report);
  EXPECT_EQ(report.kernels[0].configuration, t.session.winner);
  EXPECT_EQ(report.misses, 0u);
}

TEST_F(tuner_test, a_fast_kernel_with_wrong_numbers_loses) {
  program p = product();
  native_bytes good = code_of(p), wrong = code_of(sum());
  options.compile = [&](const kernel_group&, const kernel_configuration& c) { return c.empty() ? good : wrong; };
  kernel_tuning t = tune(p);
  EXPECT_EQ(t.winner, nullptr);
  EXPECT_TRUE(t.session.winner.empty());
  const candidate_result* rejected = find(t.session, candidate_outcome::wrong_numbers);
  ASSERT_NE(rejected, nullptr);
  EXPECT_NE(rejected->reason.find("output 0"), std::string::npos) << rejected->reason;
  EXPECT_GT(rejected->samples, 0);
  EXPECT_EQ(records->winner(t.payload, t.inputs, {f32({side, side})}), kernel_configuration{});
}

TEST_F(tuner_test, a_kernel_that_leaves_its_output_unwritten_loses) {
  program p = product();
  native_bytes good = code_of(p);
  native_kernel half = deserialize_native_kernel(*good);
  half.launches.back().grid = std::max<std::int64_t>(
      // The host's grid counts work items, so this does half of the work.
      1, half.launches.back().grid / 2);
  native_bytes unfinished = std::make_shared<const std::vector<std::byte>>(serialize(half));
  ASSERT_NE(*unfinished, *good);
  options.compile = [&](const kernel_group&, const kernel_configuration& c) {
    return c.empty() ? repeated(good, 2) : unfinished;
  };
  EXPECT_NE(find(tune(p).session, candidate_outcome::wrong_numbers), nullptr);
}

TEST_F(tuner_test, candidates_that_fail_are_recorded_with_their_reasons) {
  program p = product();
  native_bytes good = code_of(p);
  native_kernel broken = deserialize_native_kernel(*good);
  broken.launches.back().symbol = "nothing_of_this_name";
  int called = 0;
  std::mutex mutex;
  options.compile = [&](const kernel_group&, const kernel_configuration& c) -> native_bytes {
    if (c.empty()) return good;
    std::lock_guard lock(mutex);
    switch (called++) {
      case 0: throw error(error_kind::compile_failed, "the compiler gave up");
      case 1: throw error(error_kind::timed_out, "compiling took too long");
      case 2: throw std::runtime_error("something else");
      case 3: return std::make_shared<const std::vector<std::byte>>(serialize(broken));
      default: return good;
    }
  };
  tuning_session s = tune(p).session;
  std::multiset<candidate_outcome> outcomes;
  for (const candidate_result& c : s.candidates) outcomes.insert(c.outcome);
  EXPECT_EQ(outcomes.count(candidate_outcome::compile_failed), 2u);
  EXPECT_EQ(outcomes.count(candidate_outcome::timed_out), 1u);
  EXPECT_EQ(outcomes.count(candidate_outcome::launch_failed), 1u);
  EXPECT_EQ(find(s, candidate_outcome::compile_failed)->reason.empty(), false);
  EXPECT_EQ(find(s, candidate_outcome::timed_out)->reason, "compiling took too long");
  EXPECT_EQ(records->find(tune(p).payload, group_code_objects(p).list[0].inputs, group_code_objects(p).list[0].outputs)
                ->sessions[0],
            s);
}

TEST_F(tuner_test, a_default_that_cannot_be_made_is_said_and_not_thrown) {
  options.compile = [](const kernel_group&, const kernel_configuration&) -> native_bytes {
    throw error(error_kind::compile_failed, "no");
  };
  kernel_tuning t = tune(product());
  EXPECT_EQ(t.outcome, kernel_tuning::state::failed);
  EXPECT_EQ(t.reason, "no");
}

TEST_F(tuner_test, a_first_run_that_takes_too_long_ends_tuning) {
  program p = two_products();
  tuner plain(p, device, jit, nullptr, options);
  options.run_limit = std::chrono::milliseconds(250);
  std::map<const kernel_group*, native_bytes> good;
  options.compile = [&](const kernel_group& g, const kernel_configuration& c) {
    kernel_compiler compiler(p, jit);
    native_bytes code = compiler.compile(g, {});
    return c.empty() ? code : repeated(code, 4000);
  };
  tuner t(p, device, jit, records.get(), options);
  auto results = t.tune_all({2, 1}, 0);
  EXPECT_NE(find(results[0].session, candidate_outcome::timed_out), nullptr)
      << to_text({identify("", {}, {}, ""), {results[0].session}});
  EXPECT_FALSE(results[0].session.complete);
  EXPECT_EQ(results[0].winner, nullptr);
  EXPECT_EQ(results[1].outcome, kernel_tuning::state::not_reached);
  for (int i = 0; i < 600 && abandoned_calls() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(abandoned_calls(), 0);
}

TEST_F(tuner_test, the_hottest_come_first_and_the_budget_is_kept) {
  program p = two_products();
  double now = 0;
  int compiled = 0;
  jit.threads = 1;
  options.now_ms = [&] { return now; };
  options.compile = [&](const kernel_group& g, const kernel_configuration&) {
    now += 100;
    ++compiled;
    kernel_compiler compiler(p, jit);
    return compiler.compile(g, {});
  };
  auto order = tuner(p, device, jit, nullptr, options).tune_all({1, 5}, 0);
  ASSERT_EQ(order.size(), 2u);
  EXPECT_EQ(order[0].ms_per_run, 5);
  EXPECT_EQ(order[1].ms_per_run, 1);
  const int all = compiled;
  ASSERT_GE(all, 6);

  now = compiled = 0;
  auto cut = tuner(p, device, jit, records.get(), options).tune_all({1, 5}, 350);
  EXPECT_LE(compiled, 5);
  EXPECT_FALSE(cut[0].session.complete);
  now = compiled = 0;
  auto none = tuner(p, device, jit, nullptr, options).tune_all({1, 5}, 50);
  EXPECT_EQ(none[1].outcome, kernel_tuning::state::not_reached);
  EXPECT_LE(compiled, 2);

  // Candidates that were skipped because of the budget are tried in the next session.
  now = compiled = 0;
  EXPECT_EQ(tuner(p, device, jit, records.get(), options).tune_all({1, 5}, 0)[0].outcome, kernel_tuning::state::tuned);
}

TEST_F(tuner_test, another_compilers_winner_is_tried_first_and_checked) {
  program p = product();
  kernel_group g = group_code_objects(p).list[0];
  const kernel_configuration hint{{"tile_m", 2}, {"tile_n", 24}, {"from_before", 1}};
  tuning_session before;
  before.compiler = {"pipeline 5", "21"};
  before.winner = hint;
  records->store({identify(g.portable.payload, g.inputs, g.outputs, records->device_class()), {before}});

  jit.records = records.get();
  jit_report report;
  // Tier 0 uses the record immediately, because it compiles anyway.
  compile_bytecode(p, jit, &report);
  EXPECT_EQ(report.kernels[0].configuration, hint);

  std::vector<kernel_configuration> asked;
  jit.threads = 1;
  native_bytes good = code_of(p);
  options.compile = [&](const kernel_group&, const kernel_configuration& c) {
    asked.push_back(c);
    return good;
  };
  kernel_tuning t = tune(p);
  ASSERT_GE(asked.size(), 2u);
  EXPECT_EQ(asked[1], hint);
  // The code is the same, so nothing is gained.
  EXPECT_EQ(t.session.winner, kernel_configuration{});
  jit_report after;
  compile_bytecode(p, jit, &after);
  EXPECT_EQ(after.kernels[0].configuration, kernel_configuration{});
}

TEST_F(tuner_test, kernels_are_replaced_where_they_stand) {
  program p = product();
  program native = compile_bytecode(p, jit);
  kernel_groups groups = group_code_objects(p);
  program other = replace_kernels(native, p, groups, {{0, repeated(code_of(p), 3)}});
  EXPECT_NE(native.str(), other.str());
  EXPECT_EQ(other.kernels().size(), native.kernels().size());
  std::vector<literal> inputs{random_tensor(f32({side, side}), 5)};
  EXPECT_EQ(load(native, *device).evaluate(inputs)[0], load(other, *device).evaluate(inputs)[0]);
}

TEST_F(tuner_test, a_model_goes_on_while_it_is_tuned_and_takes_better_kernels) {
  program p = two_products();
  jit_report report;
  program native = compile_bytecode(p, jit, &report);
  executable first = load(native, *device);
  std::vector<literal> inputs{random_tensor(f32({side, side}), 5)};
  literal expected = first.evaluate(inputs)[0];
  background_options background{.budget_ms = 20000};
  background.tuning.effort = tuning_effort::quick;
  background.tuning.compile = [&](const kernel_group& g, const kernel_configuration& c) {
    kernel_compiler compiler(p, jit);
    native_bytes code = compiler.compile(g, {});
    return c.empty() ? repeated(code, 6) : code;
  };
  background_tuner tuner(p, native.clone(), report, first, std::make_shared<host_device>(1), jit, records.get(),
                         background);
  tuned_runner model(tuner, {}), other(tuner, {});
  io_buffers tensors(first);
  tensors.upload(inputs);
  std::size_t runs = 0;
  for (; runs < 20 || !tuner.progress().done; ++runs) {
    model.run(tensors.inputs(), tensors.outputs());
    EXPECT_EQ(tensors.download()[0], expected);
    EXPECT_TRUE(tuner.started());
    if (runs % 4 == 0) other.run(tensors.inputs(), tensors.outputs());
  }
  tuner.finish();
  model.run(tensors.inputs(), tensors.outputs());
  EXPECT_EQ(tensors.download()[0], expected);
  EXPECT_EQ(model.version(), tuner.newest());
  other.run(tensors.inputs(), tensors.outputs());
  EXPECT_EQ(tensors.download()[0], expected);
  EXPECT_EQ(other.version(), model.version());
  EXPECT_EQ(tuner.problem(), "");
  EXPECT_EQ(tuner.progress().tuned, 2u);
  EXPECT_EQ(tuner.progress().improved, 2u);
  EXPECT_GE(tuner.progress().swaps, 1u);
  EXPECT_EQ(tuner.results().size(), 2u);
}

TEST(device_turns, the_tuner_gets_its_share_and_no_run_overlaps_a_turn) {
  device_turns turns(0.25);
  std::atomic<bool> stop = false, in_turn = false;
  std::atomic<int> overlaps = 0, taken = 0;
  std::jthread tuning([&] {
    while (!stop) {
      auto turn = turns.take();
      in_turn = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      in_turn = false;
      ++taken;
    }
  });
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  while (std::chrono::steady_clock::now() < end) {
    device_turns::run_guard guard(turns);
    overlaps += in_turn;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    overlaps += in_turn;
  }
  stop = true;
  EXPECT_EQ(overlaps, 0);
  EXPECT_GT(taken, 3);
  EXPECT_LE(taken, 52);  // a quarter of 400 ms, each at least 2 ms
}
