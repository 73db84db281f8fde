// Successive halving: contestants take turns, round after round, each round twice as many samples, and after each round
// the slower half leaves, and with it whoever is beyond doubt slower than the first. Turns are interleaved, so that a
// machine that slows down slows all of them.
//
// Knows neither kernels nor devices: a contestant is a number, its sample a function. One thread. What the sampling
// function throws as kiln::error takes that contestant out of the race and is kept as its failure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "ir/error.hpp"
#include "jit/tuning/statistics.hpp"

namespace kiln {

struct race_options {
  int first_samples = 3;    // of each contestant in the first round
  int most_samples = 48;    // of one contestant in all
  double hopeless = 4;      // whose first sample is so many times the best one's leaves at once
  bool keep_first = false;  // contestant 0 takes part in every round
  std::function<bool()> stop = [] { return false; };  // asked before every turn: the budget is used up
};

struct contestant {
  timing time;  // samples 0: it never had a turn, or failed
  std::optional<error> failure;
  bool finished = false;  // it was in the last round
};

struct race_result {
  std::vector<contestant> contestants;
  std::vector<std::size_t> order;  // those that were timed: the last round's first, by median; then the rest, by median
  bool stopped = false;
};

// `sample(i)` gives the time of contestant i in milliseconds.
race_result run_race(std::size_t count, const std::function<double(std::size_t)>& sample, const race_options& options);

}  // namespace kiln
