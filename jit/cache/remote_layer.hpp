// A cache shared over a network, behind the folders: entries byte for byte as files (entry.hpp), by entry file name.
// The cache owns it together with whoever made it; any thread may call. Errors are thrown as kiln::error: the cache
// counts them, warns once and takes them for a miss, and stops asking for a while after repeated failures
// (remote_guard.hpp). What `get` returns is verified by the cache; `put` gets sound entries only.
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
