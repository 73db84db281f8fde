#include "generation/likeliest.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>

namespace kiln {
namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

// A logit that at least `count` logits reach, and few others: the count-th of the largest logits of `columns` parts of
// the vocabulary, which take turns, so that the loop over them becomes vector code.
constexpr std::size_t columns = 4096, most_by_columns = 1536;
float reached_by(std::span<const float> logits, std::size_t count) {
  std::vector<float> top(columns, none);
  for (std::size_t first = 0; first < logits.size(); first += columns) {
    const std::size_t width = std::min(columns, logits.size() - first);
    const float* row = logits.data() + first;
    for (std::size_t i = 0; i < width; ++i) top[i] = row[i] > top[i] ? row[i] : top[i];
  }
  const auto place = top.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::ranges::nth_element(top, place, std::greater());
  return *place;
}

std::vector<std::size_t> ids_from(std::span<const float> logits, float least) {
  constexpr std::size_t block = 32;
  std::vector<std::size_t> ids;
  for (std::size_t first = 0; first < logits.size(); first += block) {
    const auto part = logits.subspan(first, std::min(block, logits.size() - first));
    unsigned any = 0;
    for (float x : part) any |= static_cast<unsigned>(x >= least);
    for (std::size_t i = 0; any && i < part.size(); ++i)
      if (part[i] >= least) ids.push_back(first + i);
  }
  return ids;
}

// A key for sorting: the larger the logit, the smaller this unsigned number.
std::uint32_t falling_key(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);  // -0 is equal to 0
  return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

// A radix sort by digits of 11 bits, which keeps the order of equal keys. Digits that all keys share, as logits of f16
// do, are left out.
std::vector<std::size_t> sorted_ids(std::span<const float> logits) {
  constexpr int bits = 11, digits = 3;
  constexpr std::uint32_t mask = (1u << bits) - 1;
  struct entry {
    std::uint32_t key, id;
  };
  std::vector<entry> entries(logits.size()), next(logits.size());
  std::array<std::array<std::uint32_t, mask + 1>, digits> counts{};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    entries[i] = {falling_key(logits[i]), static_cast<std::uint32_t>(i)};
    for (int d = 0; d < digits; ++d) ++counts[static_cast<std::size_t>(d)][entries[i].key >> (d * bits) & mask];
  }
  for (int d = 0; d < digits; ++d) {
    auto& places = counts[static_cast<std::size_t>(d)];
    if (std::ranges::find(places, static_cast<std::uint32_t>(logits.size())) != places.end()) continue;
    std::exclusive_scan(places.begin(), places.end(), places.begin(), 0u);
    for (const entry& e : entries) next[places[e.key >> (d * bits) & mask]++] = e;
    std::swap(entries, next);
  }
  std::vector<std::size_t> ids;
  ids.reserve(entries.size());
  for (const entry& e : entries) ids.push_back(e.id);
  return ids;
}

}  // namespace

float largest(std::span<const float> logits) {
  constexpr std::size_t lanes = 16;
  std::array<float, lanes> best;
  best.fill(none);
  std::size_t i = 0;
  for (; i + lanes <= logits.size(); i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) best[l] = logits[i + l] > best[l] ? logits[i + l] : best[l];
  for (; i < logits.size(); ++i) best[0] = logits[i] > best[0] ? logits[i] : best[0];
  return *std::ranges::max_element(best);
}

std::vector<std::size_t> likeliest_ids(std::span<const float> logits, std::size_t count) {
  count = std::min(count, logits.size());
  if (count == 0) return {};
  if (count > most_by_columns || logits.size() < columns) {
    std::vector<std::size_t> ids = sorted_ids(logits);
    ids.resize(count);
    return ids;
  }
  std::vector<std::size_t> ids = ids_from(logits, reached_by(logits, count));
  const auto before = [&](std::size_t a, std::size_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(count);
  if (middle != ids.end()) std::nth_element(ids.begin(), middle, ids.end(), before);
  std::sort(ids.begin(), middle, before);
  ids.resize(count);
  return ids;
}

}  // namespace kiln
