#include "generation/sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

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

double all_weights(const sampling_options& options, std::span<const float> logits, float best) {
  double sum = 0;
  if (options.method == sampling_method::top_p)
    for (float x : logits) sum += weight(options, x, best);
  return sum;
}

// Returns how many of the ids may be drawn. The weights are sorted, largest first; `all` is the sum over the whole
// vocabulary.
std::size_t kept(const sampling_options& options, std::span<const double> weights, double all) {
  if (options.method == sampling_method::top_k) return std::clamp<std::size_t>(options.top_k, 1, weights.size());
  double sum = 0;
  std::size_t count = 0;
  while (count < weights.size() && sum < options.top_p * all) sum += weights[count++];
  return std::max<std::size_t>(count, 1);
}

// The ids that may be drawn, by falling logits, the lowest of equal ones first. A vocabulary is large and few of its
// ids are likely, so only as many as may be kept are sorted.
std::vector<std::size_t> likeliest_first(const sampling_options& options, std::span<const float> logits, float best,
                                         double all) {
  const auto before = [&](std::size_t a, std::size_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto sort_first = [&](std::size_t count) {
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
    if (middle != order.end()) std::nth_element(order.begin(), middle, order.end(), before);
    std::sort(order.begin(), middle, before);
  };
  std::size_t count =
      std::min<std::size_t>(options.method == sampling_method::top_k ? options.top_k : 64, order.size());
  sort_first(count);
  const auto sum_of_first = [&] {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += weight(options, logits[order[i]], best);
    return sum;
  };
  while (options.method == sampling_method::top_p && count < order.size() && sum_of_first() < options.top_p * all) {
    count = std::min(8 * count, order.size());
    sort_first(count);
  }
  order.resize(count);
  return order;
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
  if (options_.method == sampling_method::greedy && options_.repetition_penalty == 1)
    return static_cast<std::int64_t>(likeliest(given));
  std::vector<float> logits(given.begin(), given.end());
  for (float& x : logits)
    if (std::isnan(x)) x = -std::numeric_limits<float>::infinity();
  if (options_.repetition_penalty != 1) penalize(logits, before, options_.repetition_penalty);
  const auto best = std::ranges::max_element(logits);
  if (options_.method == sampling_method::greedy || std::isinf(*best)) return best - logits.begin();

  const double all = all_weights(options_, logits, *best);
  const std::vector<std::size_t> order = likeliest_first(options_, logits, *best, all);
  std::vector<double> probabilities;
  for (std::size_t id : order) probabilities.push_back(weight(options_, logits[id], *best));
  probabilities.resize(kept(options_, probabilities, all));
  // Not std::discrete_distribution, whose results differ between standard libraries.
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  double rest = static_cast<double>(engine_() >> 11) * 0x1p-53 * sum;
  std::size_t chosen = 0;
  while (chosen + 1 < probabilities.size() && rest >= probabilities[chosen]) rest -= probabilities[chosen++];
  return static_cast<std::int64_t>(order[chosen]);
}

}  // namespace kiln
