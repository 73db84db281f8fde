// Graph replay gives the same bits as eager launches, whatever changes between two runs.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "graph_programs.hpp"
#include "ir/cancellation.hpp"
#include "ir/error.hpp"
#include "runtime/gpu/graph_nodes.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class gpu_graphs : public on_stand_in {
 protected:
  std::size_t graph_launches() const {
    return control.calls(entry(GetParam(), "cuGraphLaunch", "hipGraphLaunch").c_str());
  }
  std::size_t kernel_patches() const {
    return control.calls(
        entry(GetParam(), "cuGraphExecKernelNodeSetParams", "hipGraphExecKernelNodeSetParams").c_str());
  }
};
INSTANTIATE_TEST_SUITE_P(stand_in, gpu_graphs, ::testing::ValuesIn(stand_ins), name_of);

constexpr graph_options nodes{.policy = graph_policy::on, .order = graph_order::chain, .making = graph_making::nodes};
constexpr graph_options branches{.policy = graph_policy::on, .order = graph_order::branches};
constexpr graph_options capture{.policy = graph_policy::on, .making = graph_making::capture};
constexpr graph_options automatic{.policy = graph_policy::automatic};

TEST_P(gpu_graphs, the_same_bits_whatever_changes) {
  auto device = open_stand_in(GetParam());
  for (const program& p : {plain_program(), rich_program(), branching_program()}) {
    executable e = load(p, *device);
    tensor_sets sets(e, 5);
    auto theirs = device->make_stream();
    execution_context eager = e.make_context({.policy = graph_policy::off});
    // Selects the sets of inputs and outputs for each run: the same, other inputs, other outputs, both, and back.
    constexpr std::pair<int, int> mixes[] = {{0, 0}, {0, 0}, {1, 0}, {1, 2}, {3, 4}, {0, 0}, {3, 4},
                                             {0, 0}, {3, 4}, {2, 1}, {4, 0}, {4, 0}, {1, 1}};
    for (const graph_options& options : {nodes, branches, capture, automatic}) {
      execution_context context = e.make_context(options);
      float first = 0.01f;
      for (auto [in, out] : mixes)
        for (device_stream* stream : {static_cast<device_stream*>(nullptr), theirs.get()}) {
          auto inputs = inputs_for(e, first += 0.01f);
          auto expected = run_mixed(e, eager, *sets.sets[0], *sets.sets[0], inputs);
          EXPECT_EQ(run_mixed(e, context, *sets.sets[in], *sets.sets[out], inputs, stream), expected);
        }
      graph_report r = context.report();
      EXPECT_EQ(r.failures, 0u) << r.reason;
      if (options.policy == graph_policy::on) {
        EXPECT_EQ(r.mode, "replay");
        EXPECT_EQ(r.replays, 2 * std::size(mixes) - (options.making == graph_making::capture));
        EXPECT_GT(r.patches + r.updates, 0u);
      }
    }
  }
}

TEST_P(gpu_graphs, a_replayed_run_is_one_launch_and_one_wait) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  execution_context context = e.make_context(nodes);
  io_buffers a(e);
  a.upload(std::vector{vector_literal(ramp(3.0f))});
  e.run(context, a.inputs(), a.outputs());
  for (int round = 0; round < 3; ++round) {
    control.reset();
    e.run(context, a.inputs(), a.outputs());
    EXPECT_EQ(graph_launches(), 1u);
    EXPECT_EQ(control.calls(GetParam().launch), 0u);
    EXPECT_EQ(control.calls(GetParam().synchronize), 1u);
    std::string log = control.log();
    for (const char* word : {"Alloc", "Malloc", "Free", "Memcpy", "Event", "SetParams", "Instantiate"})
      EXPECT_THAT(log, Not(HasSubstr(word)));
  }
  EXPECT_EQ(floats(a.download()[0]), plain_result(ramp(3.0f)));
  EXPECT_EQ(context.report().captures, 1u);
  EXPECT_EQ(context.report().replays, 4u);
}

TEST_P(gpu_graphs, only_nodes_that_use_a_pointer_are_patched) {
  auto device = open_stand_in(GetParam());
  executable e = load(branching_program(), *device);
  execution_context context = e.make_context(nodes);
  tensor_sets sets(e, 2);
  auto inputs = inputs_for(e, 0.5f);
  auto expected = run_mixed(e, context, *sets.sets[0], *sets.sets[0], inputs);
  std::vector<executable::input_span> mixed{sets.sets[0]->inputs()[0], sets.sets[1]->inputs()[1]};
  sets.sets[1]->upload(inputs);
  control.reset();
  e.run(context, mixed, sets.sets[0]->outputs());
  // Only exponential(z) is a kernel node; the copy of z is another kind of node.
  EXPECT_EQ(kernel_patches(), 1u);
  EXPECT_EQ(context.report().patches, 2u);
  EXPECT_EQ(sets.sets[0]->download(), expected);
}

TEST_P(gpu_graphs, taking_turns_with_a_few_sets_of_tensors_patches_nothing) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  execution_context context = e.make_context(nodes);
  tensor_sets sets(e, 2);
  for (auto& s : sets.sets) s->upload(inputs_for(e, 1.0f));
  auto run = [&](int i) { e.run(context, sets.sets[i % 2]->inputs(), sets.sets[(i + 1) % 2]->outputs()); };
  for (int i = 0; i < 4; ++i) run(i);
  EXPECT_EQ(context.report().captures, 2u);
  control.reset();
  for (int i = 0; i < 10; ++i) run(i);
  EXPECT_EQ(kernel_patches(), 0u);
  EXPECT_EQ(graph_launches(), 10u);

  // Pointers are new in every run: graphs are patched, and there are never more graphs than allowed.
  tensor_sets many(e, 40);
  for (int round = 0; round < 2; ++round)
    for (auto& s : many.sets) {
      s->upload(inputs_for(e, 2.0f));
      e.run(context, s->inputs(), s->outputs());
    }
  EXPECT_EQ(context.report().captures, 2u);
  for (int round = 0; round < 5; ++round)
    for (int i = 0; i < 6; ++i) e.run(context, many.sets[i]->inputs(), many.sets[i]->outputs());
  EXPECT_LE(context.report().captures, graph_options{}.most_graphs);
  EXPECT_EQ(floats(many.sets[0]->download()[0]), plain_result(ramp(2.0f, 0.001f)));
}

TEST_P(gpu_graphs, kernels_that_wait_by_themselves_begin_early) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  io_buffers a(e);
  a.upload(std::vector{vector_literal(ramp(3.0f))});
  auto run = [&] {
    execution_context context = e.make_context(nodes);
    e.run(context, a.inputs(), a.outputs());
    EXPECT_EQ(floats(a.download()[0]), plain_result(ramp(3.0f)));
    EXPECT_EQ(context.report().failures, 0u) << context.report().reason;
    EXPECT_EQ(context.report().replays, 1u);
  };
  control.reset();
  run();
  std::size_t edges = control.calls("cuGraphAddDependencies_v2");
  EXPECT_EQ(edges, GetParam().api == gpu::api::cuda ? e.plan().report.launches - 1 : 0);
  if (!edges) return;
  // If a driver refuses such an edge, a full dependency is used.
  control.reset();
  control.fail("cuGraphAddDependencies_v2", 1, 801);
  run();
  EXPECT_EQ(control.calls("cuGraphAddDependencies_v2"), edges + 1);
}

TEST_P(gpu_graphs, one_tensor_for_two_inputs) {
  auto device = open_stand_in(GetParam());
  executable e = load(branching_program(), *device);
  execution_context context = e.make_context(branches), eager = e.make_context({.policy = graph_policy::off});
  tensor_sets sets(e, 2);
  auto inputs = inputs_for(e, 0.5f);
  run_mixed(e, context, *sets.sets[0], *sets.sets[0], inputs);
  std::vector<executable::input_span> same{sets.sets[0]->inputs()[0], sets.sets[0]->inputs()[0]};
  e.run(context, same, sets.sets[0]->outputs());
  e.run(eager, same, sets.sets[1]->outputs());
  EXPECT_EQ(sets.sets[0]->download(), sets.sets[1]->download());
}

TEST_P(gpu_graphs, empty_tensors_and_other_shapes) {
  auto device = open_stand_in(GetParam());
  for (std::int64_t size : {5, 64, 7, 1}) {
    shape type{element_type::f32, {size}}, empty{element_type::f32, {0, 3}};
    program p;
    module& m = p.main();
    value v = m.add_parameter("x", type), nothing = m.add_parameter("nothing", empty);
    for (int i = 0; i < 3; ++i)
      v = call(p, m, "add_counter",
               make_kernel({make_launch("add_counter", size, {in(0), scratch(0), out(0)})}, {{4, false, true}}), {v},
               {type});
    m.set_outputs({v, nothing}, {"y", "nothing_again"});
    executable e = load(p, *device);
    std::vector<float> data(static_cast<std::size_t>(size), 2.5f);
    std::vector<literal> inputs{literal::of(type, data), literal(empty, std::vector<std::byte>())};
    for (const graph_options& options : {nodes, branches, capture, automatic}) {
      execution_context context = e.make_context(options);
      tensor_sets sets(e, 2);
      for (int round = 0; round < 4; ++round)
        EXPECT_EQ(run_mixed(e, context, *sets.sets[round % 2], *sets.sets[0], inputs), inputs);
    }
  }
}

TEST_P(gpu_graphs, tensor_maps_are_encoded_again_for_patched_nodes) {
  if (GetParam().api == gpu::api::hip) GTEST_SKIP() << "HIP has no tensor maps";
  auto device = open_stand_in(GetParam());
  program p;
  module& m = p.main();
  launch l = make_launch("twice_mapped", n, {in(0), out(0)});
  l.tensor_maps.push_back({0, element_type::f32, {n}, {}, {n}, 0, 128});
  value y = call(p, m, "twice_mapped", make_kernel({l}), {m.add_parameter("x", vector_type)}, {vector_type});
  m.set_outputs({call(p, m, "twice_mapped", make_kernel({l}), {y}, {vector_type})}, {"y"});
  executable e = load(p, *device);
  execution_context context = e.make_context(nodes);
  tensor_sets sets(e, 3);
  for (int i : {0, 1, 2, 1, 0, 2, 2, 1}) {
    auto x = ramp(static_cast<float>(i), 1.0f), expected = x;
    for (float& v : expected) v *= 4;
    EXPECT_EQ(floats(run_mixed(e, context, *sets.sets[i], *sets.sets[0], {vector_literal(x)})[0]), expected);
  }
}

TEST_P(gpu_graphs, contexts_and_executables_may_move) {
  auto device = open_stand_in(GetParam());
  auto loaded = std::make_unique<executable>(load(rich_program(), *device));
  auto inputs = inputs_for(*loaded, 0.02f);
  for (const graph_options& options : {nodes, branches, capture, automatic}) {
    auto first = std::make_unique<execution_context>(loaded->make_context(options));
    executable copy = *loaded;
    tensor_sets sets(copy, 2);
    auto expected = loaded->evaluate(inputs);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run_mixed(copy, *first, *sets.sets[0], *sets.sets[0], inputs), expected);
    auto second = std::make_unique<execution_context>(std::move(*first));
    first.reset();
    executable moved = std::move(copy);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(run_mixed(moved, *second, *sets.sets[i % 2], *sets.sets[1], inputs), expected);
    execution_context third = std::move(*second);
    second.reset();
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(run_mixed(*loaded, third, *sets.sets[i % 2], *sets.sets[i % 2], inputs), expected);
    EXPECT_EQ(third.report().failures, 0u);
  }
}

TEST_P(gpu_graphs, a_loop_whose_condition_is_known_never_waits_for_the_device) {
  auto device = open_stand_in(GetParam());
  program p;
  module& m = p.main();
  module& body = p.add_module("body");
  value i = body.add_parameter("i", count_type), go = body.add_parameter("go", flag_type),
        x = body.add_parameter("x", vector_type);
  value next = add_iteration(p, body, i, twice(p, body, x));
  body.set_outputs({go, next, next}, {"go", "x", "all"});
  value start = m.add_parameter("x", vector_type);
  value l = m.add(loop{1, 5},
                  {m.add_constant(literal::of<std::int64_t>(count_type, {5})),
                   m.add_constant(literal::of<std::uint8_t>(flag_type, {1})), start},
                  {&body});
  m.set_outputs({l, value{l.producer, 1}}, {"last", "all"});
  executable e = load(p, *device);
  auto inputs = inputs_for(e, 0.5f);
  auto expected = e.evaluate(inputs);
  for (const graph_options& options : {nodes, capture}) {
    execution_context context = e.make_context(options);
    tensor_sets sets(e, 2);
    for (int round = 0; round < 4; ++round)
      EXPECT_EQ(run_mixed(e, context, *sets.sets[round % 2], *sets.sets[0], inputs), expected);
    sets.sets[0]->upload(inputs);
    control.reset();
    e.run(context, sets.sets[0]->inputs(), sets.sets[0]->outputs());
    EXPECT_EQ(graph_launches(), 5u);
    // Captured nodes that the driver does not expose cannot be patched: the graph is captured again and updated as a
    // whole.
    bool patched = options.making == graph_making::nodes || std::string(GetParam().name) != "hip5";
    EXPECT_EQ(control.calls(GetParam().launch), patched ? 0u : 10u);
    EXPECT_EQ(control.calls(GetParam().synchronize), 1u) << control.log();
    EXPECT_EQ(control.calls(GetParam().upload), 0u);
  }
}

TEST_P(gpu_graphs, an_endless_loop_ends_when_a_stop_is_requested) {
  auto device = open_stand_in(GetParam());
  program p;
  module& m = p.main();
  module& body = p.add_module("body");
  body.add_parameter("i", count_type);
  value go = body.add_parameter("go", flag_type), x = body.add_parameter("x", vector_type);
  body.set_outputs({go, twice(p, body, x)}, {"go", "x"});
  value start = m.add_parameter("x", vector_type);
  m.set_outputs({m.add(loop{1, -1},
                       {m.add_constant(literal::of<std::int64_t>(count_type, {INT64_MAX})),
                        m.add_constant(literal::of<std::uint8_t>(flag_type, {1})), start},
                       {&body})},
                {"last"});
  executable e = load(p, *device);
  auto inputs = inputs_for(e, 0.5f);
  for (const graph_options& options : {graph_options{.policy = graph_policy::off}, nodes, capture}) {
    execution_context context = e.make_context(options);
    tensor_sets sets(e, 1);
    std::thread later([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      request_stop(stop_reason::interrupted);
    });
    try {
      run_mixed(e, context, *sets.sets[0], *sets.sets[0], inputs);
      ADD_FAILURE() << "the loop ended";
    } catch (const error& problem) {
      EXPECT_EQ(problem.kind(), error_kind::timed_out) << problem.what();
    }
    later.join();
    detail::requested_stop = stop_reason::none;
  }
}

TEST_P(gpu_graphs, on_the_callers_stream_without_waiting) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  tensor_sets sets(e, 4);
  for (int i = 0; i < 4; ++i) sets.sets[i]->upload(std::vector{vector_literal(ramp(static_cast<float>(i)))});
  auto theirs = device->make_stream(), default_stream = device->borrow_stream(nullptr);
  {
    execution_context context = e.make_context(nodes);
    control.reset();
    for (int i = 0; i < 4; ++i)
      e.run(context, sets.sets[i]->inputs(), sets.sets[i]->outputs(), i % 2 ? *default_stream : *theirs);
    EXPECT_EQ(control.calls(GetParam().synchronize), 0u);
    EXPECT_EQ(graph_launches(), 4u);
    // The destructor waits for its runs.
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(floats(sets.sets[i]->download()[0]), plain_result(ramp(static_cast<float>(i))));
}

TEST_P(gpu_graphs, threads_share_a_program) {
  auto device = open_stand_in(GetParam());
  executable e = load(rich_program(), *device);
  auto inputs = inputs_for(e, 0.02f);
  auto expected = e.evaluate(inputs);
  std::vector<std::thread> threads;
  for (const graph_options& options : {nodes, branches, capture, automatic})
    threads.emplace_back([&, options] {
      execution_context context = e.make_context(options);
      tensor_sets sets(e, 2);
      for (int i = 0; i < 30; ++i)
        EXPECT_EQ(run_mixed(e, context, *sets.sets[i % 2], *sets.sets[i / 2 % 2], inputs), expected);
      EXPECT_EQ(context.report().failures, 0u) << context.report().reason;
    });
  for (std::thread& t : threads) t.join();
}

TEST_P(gpu_graphs, automatic_decides_and_can_be_told) {
  auto device = open_stand_in(GetParam());
  executable e = load(branching_program(), *device);
  io_buffers a(e);
  a.upload(inputs_for(e, 0.5f));
  execution_context context = e.make_context(automatic);
  EXPECT_EQ(context.report().mode, "measuring");
  EXPECT_FALSE(context.decision());
  e.run(context, a.inputs(), a.outputs());
  // No graph is built for a first run, which may be the only one.
  EXPECT_EQ(context.report().captures, 0u);
  e.settle(context, a.inputs(), a.outputs());
  ASSERT_TRUE(context.decision());
  EXPECT_GT(context.decision()->eager_ms, 0);
  EXPECT_GT(context.decision()->replay_ms, 0);
  EXPECT_EQ(context.report().mode, context.decision()->replay ? "replay" : "eager");

  for (bool replay : {true, false}) {
    execution_context told = e.make_context({.decision = graph_decision{replay, replay, 2.0, 1.0}});
    control.reset();
    for (int i = 0; i < 3; ++i) e.run(told, a.inputs(), a.outputs());
    EXPECT_EQ(graph_launches(), replay ? 3u : 0u);
    EXPECT_EQ(told.report().mode, replay ? "replay" : "eager");
    EXPECT_EQ(told.report().branches, replay);
    EXPECT_EQ(told.decision()->eager_ms, 2.0);
  }

  // Once the decision is made, a run makes the same calls as if nothing had been measured.
  const graph_decision decided = *context.decision();
  execution_context always =
      e.make_context(decided.replay ? decided.branches ? branches : nodes : graph_options{.policy = graph_policy::off});
  auto calls_of = [&](execution_context& which) {
    // Builds its graph.
    e.run(which, a.inputs(), a.outputs());
    control.reset();
    e.run(which, a.inputs(), a.outputs());
    return control.log();
  };
  const std::string expected_calls = calls_of(always);
  EXPECT_FALSE(expected_calls.empty());
  EXPECT_EQ(calls_of(context), expected_calls);

  // With the policy `on`, the first runs still determine the faster order.
  execution_context ordered = e.make_context({.policy = graph_policy::on});
  EXPECT_TRUE(ordered.measuring());
  std::size_t runs = control.calls(GetParam().launch);
  e.settle(ordered, a.inputs(), a.outputs());
  EXPECT_EQ(control.calls(GetParam().launch), runs);
  ASSERT_TRUE(ordered.decision());
  EXPECT_TRUE(ordered.decision()->replay);
  EXPECT_EQ(ordered.report().captures, 2u);
  EXPECT_EQ(ordered.report().branches, ordered.decision()->branches);

  // Queued runs are measured, too, when later ones begin.
  execution_context queued = e.make_context(automatic);
  for (int i = 0; i < 5000 && !queued.decision(); ++i) {
    e.run(queued, a.inputs(), a.outputs(), queued.stream());
    if (i % 3 == 0) device->synchronize(&queued.stream());
  }
  EXPECT_TRUE(queued.decision());
}

// See graph_replay::wants_own_stream.
TEST_P(gpu_graphs, launches_of_contexts_with_graphs_go_to_one_stream) {
  auto device = open_stand_in(GetParam());
  auto theirs = device->make_stream();
  control.reset();
  // It has `prepare` launches.
  load(rich_program(), *device);
  EXPECT_EQ(control.launched_streams(), 1u);
  executable e = load(branching_program(), *device);
  auto inputs = inputs_for(e, 0.5f), expected = e.evaluate(inputs, nodes);
  tensor_sets sets(e, 2);
  auto run = [&](execution_context& context, int i) {
    EXPECT_EQ(run_mixed(e, context, *sets.sets[i % 2], *sets.sets[0], inputs, i % 3 == 1 ? theirs.get() : nullptr),
              expected);
  };
  for (const graph_options& options : {automatic, capture}) {
    execution_context context = e.make_context(options);
    std::size_t before = control.calls(GetParam().launch);
    for (int i = 0; i < 12; ++i) run(context, i);
    EXPECT_GT(control.calls(GetParam().launch), before);
    run_profile profile;
    if (context.report().mode != "eager")
      e.run_timed(context, sets.sets[0]->inputs(), sets.sets[0]->outputs(), profile);
  }
  EXPECT_EQ(control.launched_streams(), 1u);
  // Runs that never become graphs use streams of their contexts, so they may overlap.
  execution_context a = e.make_context({.policy = graph_policy::off}),
                    b = e.make_context({.policy = graph_policy::off});
  run(a, 0), run(b, 0);
  EXPECT_EQ(control.launched_streams(), 3u);
}

TEST_P(gpu_graphs, timed_runs_are_launches) {
  auto device = open_stand_in(GetParam());
  executable e = load(plain_program(), *device);
  execution_context context = e.make_context(nodes);
  io_buffers a(e);
  a.upload(std::vector{vector_literal(ramp(3.0f))});
  e.run(context, a.inputs(), a.outputs());
  run_profile profile;
  control.reset();
  e.run_timed(context, a.inputs(), a.outputs(), profile);
  EXPECT_EQ(graph_launches(), 0u);
  EXPECT_EQ(control.calls(GetParam().launch), e.plan().report.launches);
  e.run(context, a.inputs(), a.outputs());
  EXPECT_EQ(graph_launches(), 1u);
}

TEST_P(gpu_graphs, a_device_without_graphs_runs_launches) {
  EXPECT_EQ(gpu::missing_for_graphs(gpu::gpu_driver(GetParam().api, {}, "")),
            entry(GetParam(), "cuGraphCreate", "hipGraphCreate"));
  auto here = flavour;
  flavour = {};
  host_device host(2);
  executable e = load(plain_program(), host);
  flavour = here;
  execution_context context = e.make_context(nodes);
  io_buffers a(e);
  a.upload(std::vector{vector_literal(ramp(3.0f))});
  e.settle(context, a.inputs(), a.outputs());
  EXPECT_EQ(context.report().mode, "eager");
  EXPECT_EQ(context.report().failures, 0u);
  EXPECT_THROW(host.make_graph(graph_maker::nodes), error);
}

}  // namespace
}  // namespace kiln::testing
