// The memory of a device's graphs is counted over all contexts, and bounded.
#include "runtime/graph/graph_usage.hpp"

#include "graph_programs.hpp"

namespace kiln::testing {
namespace {

class gpu_graph_usage : public on_stand_in {};
INSTANTIATE_TEST_SUITE_P(stand_in, gpu_graph_usage, ::testing::ValuesIn(stand_ins), name_of);

constexpr graph_options replayed{.policy = graph_policy::on, .order = graph_order::chain};

TEST_P(gpu_graph_usage, contexts_make_only_what_they_need_while_there_is_too_much) {
  auto device = open_stand_in(GetParam());
  const executable e = load(plain_program(), *device);
  tensor_sets sets(e, 2);
  for (auto& s : sets.sets) s->upload(inputs_for(e, 1.0f));
  execution_context context = e.make_context(replayed);
  // Runs that take turns with two sets of tensors would use a graph for each.
  const auto take_turns = [&] {
    for (std::size_t i = 0; i < 8; ++i) e.run(context, sets.sets[i % 2]->inputs(), sets.sets[(i + 1) % 2]->outputs());
    EXPECT_EQ(floats(sets.sets[0]->download()[0]), plain_result(ramp(1.0f, 0.001f)));
  };
  EXPECT_EQ(graphs_of(*device).graphs, 0u);
  {
    std::vector<execution_context> others;
    while (!has_too_many_graphs(*device)) {
      others.push_back(e.make_context(replayed));
      e.run(others.back(), sets.sets[0]->inputs(), sets.sets[0]->outputs());
    }
    EXPECT_EQ(graphs_of(*device).graphs, others.size());
    EXPECT_LT(graphs_of(*device).bytes, most_graph_bytes + most_graph_bytes / others.size());
    take_turns();
    EXPECT_EQ(context.report().captures, 1u);
    EXPECT_EQ(context.report().failures, 0u) << context.report().reason;
    EXPECT_EQ(graphs_of(*device).graphs, others.size() + 1);
  }
  EXPECT_EQ(graphs_of(*device).graphs, 1u);
  take_turns();
  EXPECT_EQ(context.report().captures, 2u);
  EXPECT_EQ(graphs_of(*device).graphs, 2u);
}

}  // namespace
}  // namespace kiln::testing
