// Which way of running a plan is the fastest, found by timing the caller's own runs in turn. Pure: it says what the next run should be, and is told
// how long it took. Ways take turns in bursts of a few runs, of which the first is not counted: it makes graphs, or comes after another way's. Medians decide,
// so a few disturbed runs do not matter.
// Used by one thread at a time; allocates only when made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/graph/graph_decision.hpp"

namespace kiln {

enum class run_way : std::uint8_t { eager, chain, branches };

class graph_trial {
 public:
  // Ways that are to be compared, the one to keep where there is no difference first.
  explicit graph_trial(std::vector<run_way> ways);

  run_way next() const;
  void add(run_way way, double milliseconds);
  // Once there are enough samples.
  std::optional<graph_decision> decision() const;

  static constexpr std::size_t burst = 3, least_samples = 4, most_samples = 12;

 private:
  struct candidate {
    run_way way;
    std::size_t runs = 0, counted = 0;
    std::array<double, most_samples> samples{};
    double median() const;
  };
  std::vector<candidate> candidates_;
  std::size_t last_ = 0;  // whose burst it is
};

}  // namespace kiln
