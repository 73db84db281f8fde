#include "runtime/graph/trial.hpp"

#include <gtest/gtest.h>

#include <map>

#include "runtime/graph/graph_options.hpp"

namespace kiln::testing {
namespace {

// Runs until there is a decision; `cost` says how long the nth run of a way takes.
template <class Cost>
graph_decision decide(std::vector<run_way> ways, Cost cost, std::size_t* runs = nullptr) {
  graph_trial trial(std::move(ways));
  std::map<run_way, int> nth;
  for (std::size_t i = 0; i < 1000; ++i) {
    if (auto decision = trial.decision()) {
      if (runs) *runs = i;
      return *decision;
    }
    run_way way = trial.next();
    trial.add(way, cost(way, nth[way]++));
  }
  ADD_FAILURE() << "no decision";
  return {};
}

constexpr auto chain = run_way::chain, branches = run_way::branches, eager = run_way::eager;

TEST(graph_trial, the_fastest_way_wins) {
  for (run_way best : {chain, branches, eager}) {
    graph_decision d = decide({chain, branches, eager}, [&](run_way way, int) { return way == best ? 1.0 : 2.0; });
    EXPECT_EQ(d.replay, best != eager);
    EXPECT_EQ(d.branches, best == branches);
    EXPECT_EQ(d.eager_ms, best == eager ? 1.0 : 2.0);
    EXPECT_EQ(d.replay_ms, best == eager ? 2.0 : 1.0);
  }
}

TEST(graph_trial, disturbed_runs_and_the_making_of_graphs_do_not_count) {
  graph_decision d = decide({chain, eager}, [](run_way way, int nth) { return nth % 3 == 0 ? 100.0 : nth % 5 == 4 ? 50.0 : way == chain ? 1.0 : 1.1; });
  EXPECT_TRUE(d.replay);
  EXPECT_EQ(d.replay_ms, 1.0);
  EXPECT_EQ(d.eager_ms, 1.1);
}

TEST(graph_trial, clear_differences_end_it_early_and_none_keeps_the_first) {
  std::size_t early = 0, late = 0;
  decide({chain, eager}, [](run_way way, int) { return way == chain ? 1.0 : 2.0; }, &early);
  graph_decision same = decide({chain, branches, eager}, [](run_way way, int) { return way == chain ? 1.0 : 0.999; }, &late);
  EXPECT_EQ(early, 2u * 6);  // two bursts each
  EXPECT_EQ(late, 3u * 18);
  EXPECT_TRUE(same.replay);
  EXPECT_FALSE(same.branches);
}

TEST(graph_policy_names, go_both_ways) {
  for (graph_policy p : {graph_policy::off, graph_policy::on, graph_policy::automatic}) EXPECT_EQ(graph_policy_named(name(p)), p);
  EXPECT_FALSE(graph_policy_named("sometimes"));
}

}  // namespace
}  // namespace kiln::testing
