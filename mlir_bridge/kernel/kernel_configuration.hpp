// The choices that a finalizer may make differently for one kernel: small named integers ("tile_m", "tile_n", "unroll",
// ...). An empty configuration is the default, which always works. Sorted by name, so that printing, hashing and
// comparison are deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kiln {

using kernel_configuration = std::map<std::string, std::int64_t>;

// Returns the configured value, or `fallback`.
inline std::int64_t choose(const kernel_configuration& configuration, const std::string& name, std::int64_t fallback) {
  auto found = configuration.find(name);
  return found == configuration.end() ? fallback : found->second;
}

}  // namespace kiln
