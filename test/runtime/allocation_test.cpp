// A separate test program, because it replaces the allocation functions to count the allocations of a run.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "gpu/stand_in_driver.hpp"
#include "programs.hpp"

namespace {
std::atomic<long> allocations{0};
std::atomic<bool> counting{false};
// Allocations of a stand-in driver are not counted.
bool (*in_driver)() = nullptr;
bool counts() { return counting.load(std::memory_order_relaxed) && !(in_driver && in_driver()); }
}  // namespace

extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);
// libstdc++'s operator new, std::function and std::thread end up here, too.
extern "C" void* malloc(std::size_t bytes) {
  if (counts()) allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  if (counts()) allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}

namespace kiln::testing {
namespace {

TEST(allocations, the_counter_counts) {
  counting = true;
  auto* p = new std::vector<int>(100);
  counting = false;
  EXPECT_EQ(allocations.exchange(0), 2);
  delete p;
}

TEST(allocations, a_run_allocates_nothing) {
  host_device device(3);
  program p;
  module& m = p.main();
  module& body = p.add_module("body");
  {
    value i = body.add_parameter("i", count_type), go = body.add_parameter("go", flag_type),
          x = body.add_parameter("x", vector_type);
    body.set_outputs({go, add_iteration(p, body, i, twice(p, body, x))}, {"go", "x"});
  }
  module& then = p.add_module("then");
  then.set_outputs({exponential(p, then, then.add_parameter("x", vector_type))}, {"x"});
  module& other = p.add_module("else");
  other.set_outputs({other.add_parameter("x", vector_type)}, {"x"});
  value x = m.add_parameter("x", vector_type), w = m.add_constant(vector_literal(ramp(0.5f, 0.001f)));
  value y = multiply_packed(p, m, x, w);
  y = m.add(loop{1, -1},
            {m.add_constant(literal::of<std::int64_t>(count_type, {3})),
             m.add_constant(literal::of<std::uint8_t>(flag_type, {1})), y},
            {&body});
  y = m.add(if_else{}, {below_limit(p, m, y), y}, {&then, &other});
  m.set_outputs({y, sum(p, m, y), x}, {"y", "sum", "x"});
  executable e = load(p, device);
  execution_context context = e.make_context();
  auto input = ramp(0.01f, 0.001f);
  std::vector<float> a(n), b(n), copy(n);
  float total[2];
  auto run = [&](std::vector<float>& result, float& sum) {
    executable::input_span in[] = {std::as_bytes(std::span(input))};
    executable::output_span out[] = {std::as_writable_bytes(std::span(result)),
                                     std::as_writable_bytes(std::span(&sum, 1)),
                                     std::as_writable_bytes(std::span(copy))};
    e.run(context, in, out);
  };
  counting = true;
  // Each run uses other pointers than the one before.
  for (int round = 0; round < 50; ++round) run(round % 2 ? a : b, total[round % 2]);
  counting = false;
  EXPECT_EQ(allocations.exchange(0), 0);
  EXPECT_EQ(a, b);
  EXPECT_GT(total[0], 0.0f);
  EXPECT_EQ(total[0], total[1]);
  EXPECT_EQ(copy, input);

  run_profile profile;
  executable::input_span in[] = {std::as_bytes(std::span(input))};
  executable::output_span out[] = {std::as_writable_bytes(std::span(a)), std::as_writable_bytes(std::span(total, 1)),
                                   std::as_writable_bytes(std::span(copy))};
  e.run_timed(context, in, out, profile);
  counting = true;
  e.run_timed(context, in, out, profile);
  counting = false;
  EXPECT_EQ(allocations.exchange(0), 0);
}

TEST(allocations, a_replayed_run_allocates_nothing) {
  const stand_in_kind& kind = stand_ins[0];
  const stand_in::control& control = control_of(kind);
  in_driver = control.inside;
  flavour = {[] { return module_text(); }, kind.target};
  {
    auto device = open_stand_in(kind);
    executable e = load(rich_program(), *device);
    std::vector<std::unique_ptr<io_buffers>> sets;
    for (int i = 0; i < 20; ++i) sets.push_back(std::make_unique<io_buffers>(e));
    for (auto& set : sets) set->upload(std::vector{vector_literal(ramp(0.01f, 0.001f))});
    for (graph_making making : {graph_making::nodes, graph_making::capture}) {
      execution_context context =
          e.make_context({.policy = graph_policy::on, .order = graph_order::chain, .making = making, .most_graphs = 2});
      auto run = [&](std::size_t i, bool queued) {
        const io_buffers& set = *sets[i % sets.size()];
        if (queued) e.run(context, set.inputs(), set.outputs(), context.stream());
        else e.run(context, set.inputs(), set.outputs());
      };
      // Creates the maximum number of graphs.
      for (std::size_t i = 0; i < 50; ++i) run(i % 2 ? i : 0, i % 3 == 0);
      auto before = context.report();
      counting = true;
      // New pointers, some of which occur again.
      for (std::size_t i = 0; i < 60; ++i) run(i % 4 ? i : 0, i % 3 == 0);
      counting = false;
      EXPECT_EQ(allocations.exchange(0), 0);
      auto after = context.report();
      EXPECT_EQ(after.captures, before.captures);
      EXPECT_EQ(after.replays, before.replays + 60);
      EXPECT_GT(after.patches, before.patches);
      EXPECT_EQ(after.failures, 0u) << after.reason;
    }
  }
  in_driver = nullptr;
  flavour = {};
}

}  // namespace
}  // namespace kiln::testing
