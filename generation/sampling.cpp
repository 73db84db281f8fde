#include "generation/sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "generation/likeliest.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

void penalize(std::vector<float>& logits, std::span<const std::int64_t> before, double penalty) {
  std::vector<std::int64_t> ids(before.begin(), before.end());
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (std::int64_t id : ids) {
    if (id < 0 || id >= static_cast<std::int64_t>(logits.size())) continue;
    float& x = logits[static_cast<std::size_t>(id)];
    x = static_cast<float>(x < 0 ? x * penalty : x / penalty);
  }
}

// Returns a weight that is proportional to the id's probability.
double weight(const sampling_options& options, float logit, float best) {
  return std::exp((static_cast<double>(logit) - best) / options.temperature);
}

// The sum of the weights of all ids: exactly as doubles sum them, or between bounds, which takes a fifth of the time.
double exact_sum(const sampling_options& options, std::span<const float> logits, float best) {
  double sum = 0;
  for (float x : logits) sum += weight(options, x, best);
  return sum;
}
struct bounds {
  double low, high;
};
// Weights in f32 as 2^n times a polynomial (Taylor's) of the rest of the exponent, without branches, so that the loop
// becomes vector code. The exponent has an error of at most 126 * 3 * 2^-24, and the polynomial one of 3e-6.
bounds bounded_sum(const sampling_options& options, std::span<const float> logits, float best) {
  constexpr double error = 4e-5;
  constexpr float least = -126, whole = 12582912;  // 1.5 * 2^23: adding it rounds to a whole number
  const auto factor = static_cast<float>(std::numbers::log2e / options.temperature);
  const auto power = [&](float logit) {
    float y = (logit - best) * factor;
    y = y > least ? y : least;
    const float shifted = y + whole, rest = y - (shifted - whole);
    float p = 0.0013333558f;
    for (float c : {0.0096181291f, 0.0555041087f, 0.2402265070f, 0.6931471806f, 1.0f}) p = p * rest + c;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23));
  };
  constexpr std::size_t lanes = 16, block = 1024;
  double sum = 0;
  for (std::size_t first = 0; first < logits.size(); first += block) {
    const auto part = logits.subspan(first, std::min(block, logits.size() - first));
    std::array<float, lanes> sums{};
    std::size_t i = 0;
    for (; i + lanes <= part.size(); i += lanes)
      for (std::size_t l = 0; l < lanes; ++l) sums[l] += power(part[i + l]);
    for (; i < part.size(); ++i) sums[0] += power(part[i]);
    for (float s : sums) sum += s;
  }
  return {sum * (1 - error), sum * (1 + error)};
}

// Returns how many of the ids have at least `wanted` of the weights, which are sorted, largest first.
std::size_t count_of_sum(std::span<const double> weights, double wanted) {
  double sum = 0;
  std::size_t count = 0;
  while (count < weights.size() && sum < wanted) sum += weights[count++];
  return std::max<std::size_t>(count, 1);
}

// The weights of the ids that may be drawn, which are `ids` afterwards, by falling logits, the lowest of equal ones
// first. Few ids of a large vocabulary are likely, so only as many as may be drawn are looked for.
std::vector<double> drawn_among(const sampling_options& options, std::span<const float> logits, float best,
                                std::vector<std::size_t>& ids) {
  std::vector<double> weights;
  // Returns true if the weights of the `count` likeliest ids, or of some of them, reach `wanted`.
  const auto look_for = [&](std::size_t count, double wanted) {
    ids = likeliest_ids(logits, count);
    weights.clear();
    double sum = 0;
    for (std::size_t i = 0; i < ids.size() && sum < wanted; sum += weights.back(), ++i)
      weights.push_back(i > 0 && logits[ids[i]] == logits[ids[i - 1]] ? weights.back()
                                                                      : weight(options, logits[ids[i]], best));
    return sum >= wanted;
  };
  if (options.method == sampling_method::top_k) {
    look_for(std::max<std::size_t>(options.top_k, 1), std::numeric_limits<double>::infinity());
    return weights;
  }
  const bounds all = bounded_sum(options, logits, best);
  for (std::size_t count : {std::size_t{64}, std::size_t{1024}, logits.size()})
    if (look_for(count, options.top_p * all.high)) break;
  std::size_t kept = count_of_sum(weights, options.top_p * all.low);
  if (kept != count_of_sum(weights, options.top_p * all.high))
    kept = count_of_sum(weights, options.top_p * exact_sum(options, logits, best));
  weights.resize(kept);
  return weights;
}

}  // namespace

void check(const sampling_options& o) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw error(error_kind::usage, fmt::format("sampling: {}", what));
  };
  require(o.temperature > 0 && std::isfinite(o.temperature), "the temperature is not above 0");
  require(o.top_k > 0, "top-k is 0; give the number of likeliest ids");
  require(o.top_p > 0 && o.top_p <= 1, "top-p is not in (0, 1]");
  require(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty), "the repetition penalty is not above 0");
}

std::int64_t sampler::choose(std::span<const float> given, std::span<const std::int64_t> before) {
  const bool greedy = options_.method == sampling_method::greedy;
  std::span<const float> logits = given;
  if (!greedy || options_.repetition_penalty != 1) {
    changed_.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i)
      changed_[i] = given[i] == given[i] ? given[i] : -std::numeric_limits<float>::infinity();
    if (options_.repetition_penalty != 1) penalize(changed_, before, options_.repetition_penalty);
    logits = changed_;
  }
  const float best = largest(logits);
  if (std::isinf(best) && best < 0) return 0;
  if (greedy || std::isinf(best)) return std::ranges::find(logits, best) - logits.begin();
  std::vector<std::size_t> ids;
  const std::vector<double> weights = drawn_among(options_, logits, best, ids);
  // Not std::discrete_distribution, whose results differ between standard libraries.
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double rest = static_cast<double>(engine_() >> 11) * 0x1p-53 * sum;
  std::size_t chosen = 0;
  while (chosen + 1 < weights.size() && rest >= weights[chosen]) rest -= weights[chosen++];
  return static_cast<std::int64_t>(ids[chosen]);
}

}  // namespace kiln
