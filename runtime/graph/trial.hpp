// Which way of running a plan is the fastest, found by timing the caller's own runs. Pure: it says what the next run
// should be, and is told how long it took. Ways take turns in bursts of a few runs, of which the first does not count,
// since it comes after another way's; one burst of each is a round. The rounds of the beginning do not count either:
// graphs are made, drivers load what they load late, clocks rise. Two ways are compared by the median of their ratios
// in the same rounds, so disturbed runs do not matter, nor that a device becomes faster or slower meanwhile. A way that
// is clearly slower than another leaves. Used by one thread at a time; allocates only when made.
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
  // Ways that are to be compared, the one to keep where there is no difference first.
  explicit graph_trial(std::vector<run_way> ways);

  struct turn {
    run_way way = run_way::eager;
    std::size_t round = 0;
    bool first = true;  // of its burst
  };
  // What the next run is to be.
  turn next();
  // What it took. Times may come late, or not at all.
  void add(const turn& of, double milliseconds);
  // Once one way is left, or enough has been seen.
  std::optional<graph_decision> decision() const;

  static constexpr std::size_t burst = 4, least_rounds = 3, most_rounds = 32, most_warm_rounds = 16;
  static constexpr double warm_ms = 20, enough_ms = 200;  // of runs in rounds that do not count, and in those that do

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
  std::size_t first_counted_ = 0;  // round; 0: none yet
  double spent_ms_ = 0;            // since the beginning, or since the first round that counts
};

}  // namespace kiln
