#include "jit/tuning/device_class.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "ir/hash.hpp"

namespace kiln {
namespace {

// Sizes of the data caches in KiB; 0 if the system does not report one.
std::array<long, 3> cache_sizes() {
  std::array<long, 3> sizes{};
  constexpr std::array names{_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (long bytes = ::sysconf(names[i]); bytes > 0) sizes[i] = bytes >> 10;
  return sizes;
}

}  // namespace

std::string device_class(const device_info& device, const target_row& target) {
  if (target.family == target_family::cpu) {
    auto [l1, l2, l3] = cache_sizes();
    return fmt::format("cpu {} {}x{} {} threads caches {}K {}K {}K features {}", target.processor, target.vector_bits,
                       target.vector_registers, device.threads, l1, l2, l3,
                       blake3(target.features).hex().substr(0, 16));
  }
  // Memory is rounded to whole GiB, because different driver versions reserve different amounts of it.
  return fmt::format("{} {} {} units {} GiB", enum_name(target.family),
                     device.architecture.empty() ? target.name : device.architecture, device.multiprocessors,
                     (device.memory_bytes + (1ull << 29)) >> 30);
}

}  // namespace kiln
