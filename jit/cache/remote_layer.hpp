// A cache that is shared over a network and asked after the folders. Entries are stored byte for byte as files
// (entry.hpp) under their file names. Any thread may call. Errors are thrown as kiln::error: the cache counts them,
// warns once, treats them as a miss, and stops asking for a while after repeated failures (remote_guard.hpp). The cache
// verifies what `get` returns, and passes only valid entries to `put`.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln {

class remote_layer {
 public:
  virtual ~remote_layer() = default;
  virtual std::string name() const = 0;  // for messages: "redis://host:6379"
  virtual std::optional<std::vector<std::byte>> get(const std::string& entry_name) = 0;
  virtual void put(const std::string& entry_name, std::span<const std::byte> entry) = 0;
};

}  // namespace kiln
