// Finds the fastest way to run a plan by timing the caller's own runs. Pure: it chooses the way of the next run, and
// the caller tells it the time. Ways alternate in bursts of a few runs; one burst of each way is a round. The first run
// of a burst does not count, because it follows a run of another way. The first rounds do not count either: graphs are
// built, drivers load lazily, clocks rise. Two ways are compared by the median of their time ratios over the same
// rounds, so single disturbed runs and slow changes of the device's speed do not matter. A way that is clearly slower
// than another is dropped. Used by one thread at a time; only the constructor allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/graph/graph_decision.hpp"

namespace kiln {

enum class run_way : std::uint8_t { eager, chain, branches };

class graph_trial {
 public:
  // The ways to compare. Without a clear difference the first one wins.
  explicit graph_trial(std::vector<run_way> ways);

  struct turn {
    run_way way = run_way::eager;
    std::size_t round = 0;
    bool first = true;  // whether it is the first run of its burst
  };
  // Chooses the next run.
  turn next();
  // Records the time of a run. Times may arrive late, or never.
  void add(const turn& of, double milliseconds);
  // Set once one way is left or enough runs were timed.
  std::optional<graph_decision> decision() const;

  static constexpr std::size_t burst = 4, least_rounds = 3, most_rounds = 32, most_warm_rounds = 16;
  static constexpr double warm_ms = 20, enough_ms = 200;  // total run time of the warm-up rounds; of the counted rounds

 private:
  struct burst_times {
    std::array<double, burst - 1> ms{};
    std::size_t count = 0;
    double median() const;
  };
  struct candidate {
    run_way way;
    bool left = false;
    std::array<burst_times, most_rounds> rounds{};
  };
  void begin_round();
  // The median of a's times over b's in the same rounds, and how many of these there are.
  static std::pair<double, std::size_t> ratio(const candidate& a, const candidate& b);
  static double median(const candidate& c);

  std::vector<candidate> candidates_;
  std::size_t current_, in_burst_ = 0, round_ = 0;
  std::size_t first_counted_ = 0;  // the first round that counts; 0: none yet
  double spent_ms_ = 0;            // total run time since the start, or since the first round that counts
};

}  // namespace kiln
