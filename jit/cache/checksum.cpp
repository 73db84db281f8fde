#include "jit/cache/checksum.hpp"

#include <algorithm>
#include <vector>

#include "ir/two_threads.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln {

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  std::vector<XXH64_canonical_t> parts((bytes.size() + piece - 1) / piece);
  on_two_threads(parts.size(), bytes.size(), [&](std::size_t i) {
    const auto part = bytes.subspan(i * piece, std::min(piece, bytes.size() - i * piece));
    XXH64_canonicalFromHash(&parts[i], XXH3_64bits(part.data(), part.size()));
  });
  return std::max<std::uint64_t>(1, XXH3_64bits(parts.data(), parts.size() * sizeof(XXH64_canonical_t)));
}

}  // namespace kiln
