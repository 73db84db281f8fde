// The choices a finalizer may vary for one kernel: small named integers ("tile_m", "tile_n", "unroll", ...). Empty
// means the default configuration, which always works. Ordered, so that it prints, hashes and compares
// deterministically.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kiln {

using kernel_configuration = std::map<std::string, std::int64_t>;

// The configured value, or `fallback`.
inline std::int64_t choose(const kernel_configuration& configuration, const std::string& name, std::int64_t fallback) {
  auto found = configuration.find(name);
  return found == configuration.end() ? fallback : found->second;
}

}  // namespace kiln
