#include "session/block_sizes.hpp"

#include <algorithm>
#include <cmath>

namespace kiln {
namespace {

std::int64_t row_bytes(const row_traffic& traffic) { return traffic.input_bytes + traffic.output_bytes; }

// Returns true if the weights come from memory or a far cache.
bool has_large_weights(const row_traffic& traffic) {
  constexpr std::int64_t rows = 16, least = 1 << 16;
  return traffic.shared_bytes > std::max(rows * row_bytes(traffic), least);
}

// Returns how often a row uses each weight. A product of rows of k elements with n columns moves k + n elements and
// reads k * n weights; a convolution of p pixels moves p times as many.
std::int64_t uses_of_weights(const row_traffic& traffic) {
  constexpr double element_bytes = 4;
  const double squared = static_cast<double>(traffic.input_bytes) * static_cast<double>(traffic.output_bytes) /
                         (element_bytes * static_cast<double>(traffic.shared_bytes));
  return std::max<std::int64_t>(1, std::lround(std::sqrt(squared)));
}

// Returns true if the kernel multiplies each row by large weights that it uses only once or a few times.
bool uses_large_weights_once(const row_traffic& traffic) {
  constexpr std::int64_t large = 1 << 18, few_uses = 4;
  return traffic.shared_bytes > large && uses_of_weights(traffic) < few_uses;
}

// Returns true if what every block reads is much more than a row: the weights of a product.
bool multiplies_by_weights(const row_traffic& traffic) { return traffic.shared_bytes > 4 * row_bytes(traffic); }

}  // namespace

bool shares_panels(const row_traffic& traffic, std::int64_t rows) {
  return has_large_weights(traffic) || (multiplies_by_weights(traffic) && rows > 1);
}

std::vector<std::int64_t> block_sizes(const row_traffic& traffic) {
  // If a product reads weights, few rows should be divided into few blocks, because each block reads all weights. This
  // many rows take as long to compute as the weights take to come from memory. Blocks of small weights, which a cache
  // keeps, need no sizes between 4 and 64 rows, nor above.
  const bool large_weights = has_large_weights(traffic), unpacks = traffic.unpacks_weights && !large_weights,
             small_weights = !large_weights && !unpacks && multiplies_by_weights(traffic) && traffic.for_all_sizes;
  const std::int64_t step = large_weights ? 4 : unpacks ? 8 : 16, first_step = small_weights ? 4 : step;
  // A launch costs about as much as moving this many bytes through a cache.
  const std::int64_t enough = traffic.for_all_sizes ? 1 << 16 : 1 << 12, most = !traffic.for_all_sizes ? 16
                                                                                : small_weights        ? 64
                                                                                                       : 256;
  const std::int64_t least = traffic.for_all_sizes && uses_large_weights_once(traffic) ? 64 : 1;
  std::vector<std::int64_t> sizes{1};
  while (sizes.front() < least || (sizes.front() < most && sizes.front() * row_bytes(traffic) < enough))
    sizes.insert(sizes.begin(), sizes.front() * (sizes.size() == 1 ? first_step : step));
  return sizes;
}

std::int64_t block_cost(const row_traffic& traffic, std::int64_t rows) {
  // Weights take as long to come from memory as this many rows take to be multiplied by them.
  constexpr std::int64_t rows_of_weights = 10;
  // From this many rows on, weights that must be unpacked are turned, so that rows take 0.4 of the time.
  constexpr std::int64_t turned = 64;
  if (!multiplies_by_weights(traffic)) return 0;
  const std::int64_t products = rows * uses_of_weights(traffic);
  if (traffic.unpacks_weights) return rows < turned ? (5 * products + 1) / 2 : products;
  return has_large_weights(traffic) ? std::max(products, rows_of_weights) : products + 1;
}

}  // namespace kiln
