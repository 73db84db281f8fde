// Dividing a plan into segments, and the dependences between the steps of a segment.
#include "runtime/graph/segments.hpp"

#include <algorithm>

#include "../programs.hpp"

namespace kiln::testing {
namespace {

plan plan_of(const program& p, device& target) { return make_plan(p, target); }

TEST(graph_segments, a_chain_waits_step_by_step) {
  host_device device(1);
  program p;
  value v = p.main().add_parameter("x", vector_type);
  for (int i = 0; i < 4; ++i) v = twice(p, p.main(), v);
  p.main().set_outputs({v}, {"y"});
  plan made = plan_of(p, device);
  auto parts = cut_segments(made);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].count, 4u);
  EXPECT_FALSE(parts[0].branches);
  EXPECT_EQ(parts[0].after, (std::vector<std::vector<std::uint32_t>>{{}, {0}, {1}, {2}}));
  ASSERT_EQ(parts[0].slots.size(), 2u);
  EXPECT_EQ(parts[0].slots[0].nodes, (std::vector<std::uint32_t>{0}));  // x
  EXPECT_EQ(parts[0].slots[1].nodes, (std::vector<std::uint32_t>{3}));  // y
}

TEST(graph_segments, branches_wait_for_their_data_and_for_memory_that_is_used_again) {
  host_device device(1);
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", vector_type);
  value a = twice(p, m, x), b = exponential(p, m, x);            // 0, 1
  value c = add(p, m, a, b);                                     // 2
  value d = twice(p, m, c);                                      // 3: into the memory of a or b
  m.set_outputs({add(p, m, d, c), sum(p, m, d)}, {"y", "sum"});  // 4; 5, 6
  plan made = plan_of(p, device);
  auto parts = cut_segments(made);
  ASSERT_EQ(parts.size(), 1u);
  const auto& after = parts[0].after;
  ASSERT_EQ(after.size(), 7u);
  EXPECT_TRUE(parts[0].branches);
  EXPECT_TRUE(after[0].empty());
  EXPECT_TRUE(after[1].empty());
  EXPECT_EQ(after[2], (std::vector<std::uint32_t>{1, 0}));
  // Step 2 waits for 0 and 1.
  EXPECT_EQ(after[3], (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(after[4], (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(after[6], (std::vector<std::uint32_t>{5}));

  // For any arena: if one step writes memory that another one uses, the two are ordered, directly or indirectly.
  auto uses = [&](std::size_t node) { return std::get<launch_step>(made.blocks[0].steps[node].what); };
  std::vector<std::vector<bool>> before(7, std::vector<bool>(7));
  for (std::size_t i = 0; i < 7; ++i)
    for (std::uint32_t j : after[i]) {
      before[i][j] = true;
      for (std::size_t k = 0; k < j; ++k) before[i][k] = before[i][k] || before[j][k];
    }
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t j = 0; j < i; ++j)
      for (std::uint32_t s = 0; s < uses(i).argument_count; ++s)
        for (std::uint32_t t = 0; t < uses(j).argument_count; ++t) {
          std::size_t mine = uses(i).first_argument + s, other = uses(j).first_argument + t;
          const plan_buffer &u = made.buffers[made.arguments[mine]], &w = made.buffers[made.arguments[other]];
          bool overlap = u.place == buffer_place::arena && w.place == buffer_place::arena &&
                         u.offset < w.offset + w.bytes && w.offset < u.offset + u.bytes;
          if (overlap && (made.written[mine] || made.written[other])) {
            EXPECT_TRUE(before[i][j]) << i << " " << j;
          }
        }
}

TEST(graph_segments, what_could_all_run_at_once_is_laid_into_lanes) {
  host_device device(1);
  program p;
  module& m = p.main();
  value x = m.add_parameter("x", vector_type);
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) outputs.push_back(twice(p, m, x)), names.push_back("y" + std::to_string(i));
  m.set_outputs(outputs, names);
  auto parts = cut_segments(plan_of(p, device));
  ASSERT_EQ(parts.size(), 1u);
  static_assert(most_lanes == 4);
  EXPECT_TRUE(parts[0].branches);
  EXPECT_EQ(parts[0].after, (std::vector<std::vector<std::uint32_t>>{{}, {}, {}, {}, {0}, {1}, {2}, {3}, {4}, {5}}));

  // Two steps wait for the same step. The second goes to the lane with the oldest last step, and still waits for its
  // data.
  program forked;
  module& f = forked.main();
  x = f.add_parameter("x", vector_type);
  outputs.clear();
  for (int i = 0; i < 4; ++i) outputs.push_back(twice(forked, f, x));
  for (int i = 0; i < 2; ++i) outputs.push_back(exponential(forked, f, outputs[3]));
  names.resize(outputs.size());
  f.set_outputs(outputs, names);
  parts = cut_segments(plan_of(forked, device));
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].after, (std::vector<std::vector<std::uint32_t>>{{}, {}, {}, {}, {3}, {3, 0}}));
}

TEST(graph_segments, control_flow_cuts) {
  host_device device(1);
  program p;
  module& m = p.main();
  module& body = p.add_module("body");
  value i = body.add_parameter("i", count_type), go = body.add_parameter("go", flag_type),
        x = body.add_parameter("x", vector_type);
  body.set_outputs({go, add_iteration(p, body, i, twice(p, body, x))}, {"go", "x"});
  value start = twice(p, m, twice(p, m, m.add_parameter("x", vector_type)));
  value l = m.add(loop{1, -1},
                  {m.add_constant(literal::of<std::int64_t>(count_type, {3})),
                   m.add_constant(literal::of<std::uint8_t>(flag_type, {1})), start},
                  {&body});
  m.set_outputs({twice(p, m, l)}, {"y"});
  plan made = plan_of(p, device);
  auto parts = cut_segments(made);
  ASSERT_EQ(parts.size(), 2u);  // before the loop, and its body; one launch after it is no graph
  EXPECT_EQ(parts[0].block, 0u);
  EXPECT_EQ(parts[0].count, 2u);
  EXPECT_EQ(parts[1].block, 1u);
  EXPECT_EQ(parts[1].count, 3u);   // count, twice, add_iteration
  EXPECT_TRUE(parts[1].branches);  // the count is not needed by `twice`
  EXPECT_EQ(std::ranges::count_if(parts[1].slots, &graph_slot::is_counter), 1);
  EXPECT_EQ(parts[1].slots.size(), 3u);  // the trip, the value in and out
}

}  // namespace
}  // namespace kiln::testing
