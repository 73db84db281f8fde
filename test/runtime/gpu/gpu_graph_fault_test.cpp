// Drivers that fail at any graph call: that run and all later ones are correct and eager, nothing leaks, and no stream
// stays in capture mode.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <sstream>

#include "graph_programs.hpp"
#include "ir/error.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

class gpu_graph_faults : public on_stand_in {
 protected:
  std::size_t calls(const char* cuda, const char* hip) const {
    return control.calls(entry(GetParam(), cuda, hip).c_str());
  }
  void fail(const char* cuda, const char* hip, std::size_t nth, int status = 801) const {
    control.fail(entry(GetParam(), cuda, hip).c_str(), nth, status);
  }
  std::size_t graph_launches() const { return calls("cuGraphLaunch", "hipGraphLaunch"); }
};
INSTANTIATE_TEST_SUITE_P(stand_in, gpu_graph_faults, ::testing::ValuesIn(stand_ins), name_of);

struct maker {
  const char* name;
  graph_options options;
};
const maker makers[] = {
    {"nodes", {.policy = graph_policy::on, .order = graph_order::chain, .most_graphs = 2}},
    {"branches", {.policy = graph_policy::on, .order = graph_order::branches, .most_graphs = 2}},
    {"capture", {.policy = graph_policy::on, .making = graph_making::capture, .most_graphs = 2}},
    {"automatic", {.policy = graph_policy::automatic}},
};

// Runs a program with pointers that change in every way; some runs are queued. Compares every result.
struct life {
  const executable& e;
  std::vector<literal> inputs, expected;
  void live(const graph_options& options, const std::function<void(execution_context&)>& after_each = {}) const {
    execution_context context = e.make_context(options);
    tensor_sets sets(e, 3);
    auto stream = e.target().make_stream();
    int round = 0;
    for (auto [in, out] : {std::pair{0, 0}, {0, 0}, {1, 0}, {0, 0}, {1, 0}, {1, 2}, {2, 2}, {0, 1}}) {
      auto got =
          run_mixed(e, context, *sets.sets[in], *sets.sets[out], inputs, round++ % 3 == 2 ? stream.get() : nullptr);
      EXPECT_EQ(got, expected);
      if (after_each) after_each(context);
    }
  }
};

std::map<std::string, std::size_t> graph_calls(const stand_in::control& control) {
  std::map<std::string, std::size_t> counts;
  std::istringstream log(control.log());
  for (std::string name; std::getline(log, name);)
    if (name.find("Graph") != std::string::npos || name.find("Capture") != std::string::npos) ++counts[name];
  return counts;
}

TEST_P(gpu_graph_faults, every_call_of_graphs_may_fail) {
  std::size_t failed = 0, survived = 0;
  for (const maker& m : makers) {
    std::map<std::string, std::size_t> counts;
    // Runs a device, a program and a context from creation to destruction; calls `break_it` once graphs are used.
    // Returns the number of failures.
    auto whole = [&](auto&& break_it) {
      std::size_t failures = 0, launched = 0;
      {
        auto device = open_stand_in(GetParam());
        executable e = load(branching_program(), *device);
        life all{e, inputs_for(e, 0.5f), e.evaluate(inputs_for(e, 0.5f))};
        control.reset();
        break_it();
        all.live(m.options, [&](execution_context& context) {
          graph_report r = context.report();
          if (failures) {
            // All later runs are eager.
            EXPECT_EQ(graph_launches(), launched);
          }
          failures = r.failures;
          launched = graph_launches();
          if (!failures) return;
          EXPECT_EQ(r.mode, "eager");
          EXPECT_FALSE(r.reason.empty());
        });
        if (counts.empty()) counts = graph_calls(control);
      }
      EXPECT_EQ(control.live(), 0u) << control.live_names();
      EXPECT_EQ(control.late_uses(), 0u);
      return failures;
    };
    EXPECT_EQ(whole([] {}), 0u);
    EXPECT_GE(counts.size(), 5u);
    for (const auto& [name, count] : counts)
      for (std::size_t nth : std::set<std::size_t>{1, 2, (count + 1) / 2, count}) {
        if (nth > count) continue;
        SCOPED_TRACE(std::string(m.name) + " " + name + " #" + std::to_string(nth));
        ++(whole([&, name = name] { control.fail(name.c_str(), nth, 801); }) ? failed : survived);
      }
  }
  EXPECT_GT(failed, 30u);
  // Refused patches, and calls that release something, do no harm.
  EXPECT_GT(survived, 10u);
}

TEST_P(gpu_graph_faults, a_device_may_go_in_the_middle_of_a_graph) {
  for (const maker& m : makers) {
    std::map<std::string, std::size_t> counts;
    {
      auto device = open_stand_in(GetParam());
      executable e = load(plain_program(), *device);
      life all{e, inputs_for(e, 0.5f), e.evaluate(inputs_for(e, 0.5f))};
      control.reset();
      all.live(m.options);
      counts = graph_calls(control);
    }
    for (const auto& [name, count] : counts) {
      control.reset();
      try {
        auto device = open_stand_in(GetParam());
        executable e = load(plain_program(), *device);
        life all{e, inputs_for(e, 0.5f), e.evaluate(inputs_for(e, 0.5f))};
        control.fail(name.c_str(), (count + 1) / 2, 999);
        all.live(m.options);
      } catch (const error& err) {
        EXPECT_EQ(exit_code(err.kind()), 4) << err.what();
      }
      EXPECT_EQ(control.live(), 0u) << name << ": " << control.live_names();
      EXPECT_EQ(control.late_uses(), 0u);
    }
  }
}

TEST_P(gpu_graph_faults, a_refused_patch_becomes_an_update_and_a_refused_update_another_graph) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  auto inputs = inputs_for(e, 0.5f), expected = e.evaluate(inputs);
  execution_context context =
      e.make_context({.policy = graph_policy::on, .order = graph_order::chain, .most_graphs = 1});
  tensor_sets sets(e, 30);
  auto run = [&](std::size_t i) { EXPECT_EQ(run_mixed(e, context, *sets.sets[i], *sets.sets[i], inputs), expected); };
  run(0);
  fail("cuGraphExecKernelNodeSetParams", "hipGraphExecKernelNodeSetParams", 2);
  run(1);
  EXPECT_EQ(context.report().updates, 1u);
  run(2);  // patched again
  EXPECT_EQ(context.report().updates, 1u);
  fail("cuGraphExecKernelNodeSetParams", "hipGraphExecKernelNodeSetParams", 1);
  fail("cuGraphExecUpdate", "hipGraphExecUpdate", 1);
  run(3);
  EXPECT_EQ(context.report().rebuilds, 1u);
  EXPECT_EQ(context.report().failures, 0u);
  run(4);
  // After a while, no more graphs are requested from a driver that refuses all of them.
  for (std::size_t i = 5; i < 20; ++i) {
    fail("cuGraphExecKernelNodeSetParams", "hipGraphExecKernelNodeSetParams", 1);
    fail("cuGraphExecUpdate", "hipGraphExecUpdate", 1);
    run(i);
  }
  EXPECT_EQ(context.report().failures, 1u);
  EXPECT_EQ(context.report().rebuilds, 8u);
  EXPECT_EQ(context.report().mode, "eager");
}

// --- foreign calls ---

struct vendor {
  int throws_at = -1, calls = 0;
  const gpu::driver_functions* functions = nullptr;
};

// out = in, with the driver's copy function; one of the calls throws.
void vendor_copy(void* data, void* stream, std::span<void* const> inputs, std::span<void* const> outputs) {
  auto& v = *static_cast<vendor*>(data);
  if (v.calls++ == v.throws_at) throw std::runtime_error("the vendor's library says no");
  if (v.functions->copy_on_device(outputs[0], inputs[0], n * sizeof(float), stream))
    throw std::runtime_error("the vendor's copy failed");
}

// `count` calls between launches.
program vendor_program(int count) {
  program p;
  module& m = p.main();
  value v = twice(p, m, m.add_parameter("x", vector_type));
  for (int i = 0; i < count; ++i)
    v = twice(p, m, call(p, m, "vendor", make_kernel({make_launch("twice", n, {in(0), out(0)})}), {v}, {vector_type}));
  m.set_outputs({call(p, m, "vendor", make_kernel({make_launch("twice", n, {in(0), out(0)})}), {v}, {vector_type})},
                {"y"});
  return p;
}

TEST_P(gpu_graph_faults, calls_that_are_not_ours) {
  gpu::driver_search search = gpu::find_driver(GetParam().api, library_path(GetParam()));
  for (int count : {0, 2})
    for (int throws_at : {-1, 0, 1, 2, 3, 5, 8}) {
      SCOPED_TRACE(std::to_string(count) + " throws at " + std::to_string(throws_at));
      auto device = open_stand_in(GetParam());
      vendor v{.throws_at = throws_at, .functions = &search.driver->functions()};
      foreign_call calls[] = {{"vendor", vendor_copy, &v, {}}};
      executable e = load(vendor_program(count), *device, {.calls = calls});
      EXPECT_EQ(e.plan().report.calls, static_cast<std::size_t>(count + 1));
      execution_context context = e.make_context({.policy = graph_policy::on});
      tensor_sets sets(e, 3);
      auto expected = ramp(1.0f);
      for (float& f : expected) f *= static_cast<float>(2 << count);
      std::size_t thrown = 0, right = 0;
      for (int i : {0, 0, 1, 0, 2, 1, 0, 0}) {
        try {
          EXPECT_EQ(floats(run_mixed(e, context, *sets.sets[i], *sets.sets[i], {vector_literal(ramp(1.0f))})[0]),
                    expected);
          ++right;
        } catch (const std::runtime_error& err) {
          // The exception of an eager run is passed on to the caller.
          EXPECT_THAT(err.what(), HasSubstr("says no"));
          ++thrown;
        }
      }
      EXPECT_LE(thrown, 1u);
      EXPECT_EQ(thrown + right, 8u);
      graph_report r = context.report();
      if (throws_at == -1) {
        EXPECT_EQ(r.failures, 0u) << r.reason;
        EXPECT_EQ(r.mode, "replay");
        EXPECT_GT(r.replays, 5u);
      } else if (!thrown && v.calls > throws_at) {
        EXPECT_EQ(r.failures, 1u);
        EXPECT_EQ(r.mode, "eager");
        EXPECT_THAT(r.reason, HasSubstr("says no"));
      }
    }
}

}  // namespace
}  // namespace kiln::testing
