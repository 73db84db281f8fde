#include "runtime/graph/trial.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <random>

#include "runtime/graph/graph_options.hpp"

namespace kiln::testing {
namespace {

struct outcome {
  graph_decision decision;
  std::size_t runs = 0;
  std::map<run_way, std::size_t> per_way;
};

// Runs until there is a decision. `cost` returns the time of the n-th run, which is the k-th of its burst, for a way.
// Times are reported `late` runs later; those of `lost` are never reported.
template <class Cost>
outcome decide(std::vector<run_way> ways, Cost cost, std::size_t late = 0, std::size_t lost = 0) {
  graph_trial trial(std::move(ways));
  std::deque<std::pair<graph_trial::turn, double>> told;
  outcome result;
  std::size_t in_burst = 0;
  for (; result.runs < 4000; ++result.runs) {
    if (auto decision = trial.decision()) {
      result.decision = *decision;
      return result;
    }
    graph_trial::turn turn = trial.next();
    in_burst = turn.first ? 0 : in_burst + 1;
    ++result.per_way[turn.way];
    if (!lost || result.runs % lost) told.emplace_back(turn, cost(turn.way, result.runs, in_burst));
    if (told.size() <= late) continue;
    trial.add(told.front().first, told.front().second);
    told.pop_front();
  }
  ADD_FAILURE() << "no decision";
  return result;
}

constexpr auto chain = run_way::chain, branches = run_way::branches, eager = run_way::eager;
const std::vector<run_way> all{chain, branches, eager};

TEST(graph_trial, the_fastest_way_wins) {
  for (run_way best : all) {
    graph_decision d = decide(all, [&](run_way way, auto, auto) { return way == best ? 1.0 : 2.0; }).decision;
    EXPECT_EQ(d.replay, best != eager);
    EXPECT_EQ(d.branches, best == branches);
    EXPECT_EQ(d.eager_ms, best == eager ? 1.0 : 2.0);
    EXPECT_EQ(d.replay_ms, best == eager ? 2.0 : 1.0);
  }
}

TEST(graph_trial, disturbed_runs_and_the_making_of_graphs_do_not_count) {
  graph_decision d = decide({chain, eager}, [](run_way way, std::size_t nth, std::size_t in_burst) {
                       return in_burst == 0 ? 100.0 : nth % 7 == 4 ? 50.0 : way == chain ? 1.0 : 1.1;
                     }).decision;
  EXPECT_TRUE(d.replay);
  EXPECT_EQ(d.replay_ms, 1.0);
  EXPECT_EQ(d.eager_ms, 1.1);
}

TEST(graph_trial, clear_differences_end_it_early_and_none_keeps_the_first) {
  outcome early = decide({chain, eager}, [](run_way way, auto, auto) { return way == chain ? 3.0 : 6.0; });
  EXPECT_EQ(early.runs, 2 * 4 * (1 + graph_trial::least_rounds));
  outcome same = decide(all, [](run_way way, auto, auto) { return way == chain ? 1.0 : 0.995; });
  EXPECT_TRUE(same.decision.replay);
  EXPECT_FALSE(same.decision.branches);
  // The number of warm-up and measured rounds is bounded even for short runs.
  EXPECT_LE(decide(all, [](auto, auto, auto) { return 0.001; }).runs,
            3 * 4 * (graph_trial::most_warm_rounds + graph_trial::most_rounds + 1));
  // Long runs are not repeated more often than necessary.
  EXPECT_LE(decide(all, [](auto, auto, auto) { return 100.0; }).runs, 3 * 4 * (1 + graph_trial::least_rounds));
}

TEST(graph_trial, a_way_that_is_clearly_slower_leaves) {
  outcome o = decide(all, [](run_way way, auto, auto) { return way == eager ? 0.3 : way == chain ? 0.1 : 0.098; });
  EXPECT_TRUE(o.decision.branches);
  EXPECT_LT(o.per_way[eager] * 2, o.per_way[chain]);
  EXPECT_EQ(o.decision.eager_ms, 0.3);
}

TEST(graph_trial, a_device_whose_clocks_rise_and_noise_do_not_decide) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(1.0, 0.02);
    std::map<run_way, double> true_ms{{chain, 0.1}, {branches, 0.1}, {eager, 0.1}};
    run_way best = all[seed % 3];
    true_ms[best] *= 0.97;
    double clock_ms = 0;
    graph_decision d = decide(all, [&](run_way way, auto, auto) {
                         double ms = true_ms[way] * (1 + 2 * std::exp(-clock_ms / 30)) * std::abs(noise(random)) *
                                     (random() % 20 ? 1.0 : 3.0);
                         clock_ms += ms;
                         return ms;
                       }).decision;
    EXPECT_EQ(d.replay, best != eager) << seed;
    EXPECT_EQ(d.branches, best == branches) << seed;
  }
}

TEST(graph_trial, times_may_come_late_or_not_at_all) {
  for (std::size_t late : {1, 8, 50})
    for (std::size_t lost : {0, 3, 10}) {
      outcome o = decide(all, [](run_way way, auto, auto) { return way == branches ? 0.1 : 0.11; }, late, lost);
      EXPECT_TRUE(o.decision.branches) << late << " " << lost;
    }
}

TEST(graph_policy_names, go_both_ways) {
  for (graph_policy p : {graph_policy::off, graph_policy::on, graph_policy::automatic})
    EXPECT_EQ(graph_policy_named(name(p)), p);
  EXPECT_FALSE(graph_policy_named("sometimes"));
}

}  // namespace
}  // namespace kiln::testing
