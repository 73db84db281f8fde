#include "generation/sampling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

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

// The number of ids that remain of those sorted by falling probability.
std::size_t kept(const sampling_options& options, std::span<const double> probabilities) {
  if (options.method == sampling_method::top_k) return std::clamp<std::size_t>(options.top_k, 1, probabilities.size());
  double sum = 0;
  std::size_t count = 0;
  while (count < probabilities.size() && sum < options.top_p) sum += probabilities[count++];
  return std::max<std::size_t>(count, 1);
}

// Sixteen maxima side by side, so that the loop becomes vector code. A NaN is never larger.
std::size_t likeliest(std::span<const float> logits) {
  constexpr std::size_t lanes = 16;
  std::array<float, lanes> best;
  best.fill(-std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) best[l] = logits[i + l] > best[l] ? logits[i + l] : best[l];
  for (; i < logits.size(); ++i) best[0] = logits[i] > best[0] ? logits[i] : best[0];
  const float most = *std::ranges::max_element(best);
  return std::isinf(most) && most < 0 ? 0 : static_cast<std::size_t>(std::ranges::find(logits, most) - logits.begin());
}

}  // namespace

std::int64_t sampler::choose(std::span<const float> given, std::span<const std::int64_t> before) {
  if (options_.method == sampling_method::greedy && options_.repetition_penalty == 1)
    return static_cast<std::int64_t>(likeliest(given));
  std::vector<float> logits(given.begin(), given.end());
  for (float& x : logits)
    if (std::isnan(x)) x = -std::numeric_limits<float>::infinity();
  if (options_.repetition_penalty != 1) penalize(logits, before, options_.repetition_penalty);
  const auto best = std::ranges::max_element(logits);
  if (options_.method == sampling_method::greedy || std::isinf(*best)) return best - logits.begin();

  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::vector<double> probabilities;
  for (std::size_t id : order)
    probabilities.push_back(std::exp((static_cast<double>(logits[id]) - *best) / options_.temperature));
  const double all = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& p : probabilities) p /= all;
  probabilities.resize(kept(options_, probabilities));
  // Not std::discrete_distribution, whose results differ between standard libraries.
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  double rest = static_cast<double>(engine_() >> 11) * 0x1p-53 * sum;
  std::size_t chosen = 0;
  while (chosen + 1 < probabilities.size() && rest >= probabilities[chosen]) rest -= probabilities[chosen++];
  return static_cast<std::int64_t>(order[chosen]);
}

}  // namespace kiln
