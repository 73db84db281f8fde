#include "jit/cache/checksum.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln {

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  // Below this, starting a thread costs more than it saves.
  constexpr std::size_t threaded_bytes = std::size_t{8} << 20;
  std::vector<XXH64_canonical_t> parts((bytes.size() + piece - 1) / piece);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < parts.size();) {
      const auto part = bytes.subspan(i * piece, std::min(piece, bytes.size() - i * piece));
      XXH64_canonicalFromHash(&parts[i], XXH3_64bits(part.data(), part.size()));
    }
  };
  std::thread second;
  if (bytes.size() >= threaded_bytes && std::thread::hardware_concurrency() > 1) {
    try {
      second = std::thread(work);
    } catch (const std::system_error&) {
      // No more threads are available: the current thread does all the work.
    }
  }
  work();
  if (second.joinable()) second.join();
  return std::max<std::uint64_t>(1, XXH3_64bits(parts.data(), parts.size() * sizeof(XXH64_canonical_t)));
}

}  // namespace kiln
