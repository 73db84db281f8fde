// Chooses the next id from logits: the likeliest one, or a random one among the likeliest (top-k; top-p: Holtzman et
// al., The Curious Case of Neural Text Degeneration, 2020). The repetition penalty is that of Keskar et al. (CTRL,
// 2019). Used by one thread; the same seed gives the same ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace kiln {

enum class sampling_method : std::uint8_t { greedy, top_k, top_p };

struct sampling_options {
  sampling_method method = sampling_method::greedy;
  double temperature = 1;         // > 0; divides the logits; greedy does not use it
  std::size_t top_k = 50;         // at least 1
  double top_p = 0.9;             // in (0, 1]
  double repetition_penalty = 1;  // > 0; 1: none
  std::uint64_t seed = 0;
  friend bool operator==(const sampling_options&, const sampling_options&) = default;
};
// Throws error{usage} that names an option outside of its range.
void check(const sampling_options& options);

class sampler {
 public:
  explicit sampler(const sampling_options& options) : options_(options), engine_(options.seed) {}
  // `before` are the ids of the sequence so far, for the repetition penalty. Of equal logits the lowest id wins. NaNs
  // are never chosen.
  std::int64_t choose(std::span<const float> logits, std::span<const std::int64_t> before);

 private:
  sampling_options options_;
  std::mt19937_64 engine_;
  std::vector<float> changed_;  // the logits with the penalty
};

}  // namespace kiln
