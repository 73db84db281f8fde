#include "ir/nearest_name.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace kiln {
namespace {

// Longer names are not compared, so that a message costs nothing whatever a file calls its dimensions.
constexpr std::size_t longest_name = 200;

// Optimal string alignment distance (Damerau and Levenshtein, without overlapping swaps), three rows of its table.
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::vector<std::size_t>, 3> rows;
  for (auto& row : rows) row.resize(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto &row = rows[i % 3], &above = rows[(i + 2) % 3], &two_above = rows[(i + 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view wrong, std::span<const std::string_view> known) {
  if (wrong.size() > longest_name) return {};
  // Every third character may be wrong, and one or two of a short name.
  std::size_t best = std::max<std::size_t>(wrong.size() / 3, wrong.size() > 2 ? 2 : 1) + 1;
  std::string_view nearest;
  for (std::string_view name : known) {
    if (name.size() > longest_name) continue;
    const std::size_t changes = distance(wrong, name);
    if (changes < std::min(best, std::max(wrong.size(), name.size()))) best = changes, nearest = name;
  }
  return nearest;
}

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> known) {
  const std::string_view nearest = nearest_name(wrong, known);
  return nearest.empty() ? std::string() : "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace kiln
