// Successive halving (Jamieson and Talwalkar, 2016). In each round every remaining candidate is sampled, with twice as
// many samples as in the round before. After the round the slower half is dropped, and so is every candidate that is
// clearly slower than the best. Samples of the candidates are interleaved, so a slowdown of the machine affects all of
// them.
//
// It knows neither kernels nor devices: a candidate is an index, and a function samples it. Used by one thread.
// If the sampling function throws kiln::error, that candidate is dropped and the error is kept as its failure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "ir/error.hpp"
#include "jit/tuning/statistics.hpp"

namespace kiln {

struct halving_options {
  int first_samples = 3;    // of each candidate in the first round
  int most_samples = 48;    // of each candidate in total
  double hopeless = 4;      // a candidate whose first sample is slower than the best by this factor is dropped
  bool keep_first = false;  // candidate 0 takes part in every round
  std::function<bool()> stop = [] { return false; };  // asked before every sample; true ends it (budget used up)
};

struct halving_candidate {
  timing time;  // samples is 0 if it was never sampled, or failed
  std::optional<error> failure;
  bool finished = false;  // it took part in the last round
};

struct halving_result {
  std::vector<halving_candidate> candidates;
  // The candidates that were timed: those of the last round sorted by median, then the others sorted by median.
  std::vector<std::size_t> order;
  bool stopped = false;
};

// `sample(i)` returns the time of candidate i in milliseconds.
halving_result successive_halving(std::size_t count, const std::function<double(std::size_t)>& sample,
                                  const halving_options& options);

}  // namespace kiln
