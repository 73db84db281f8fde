// Caches content hashes of constants for several plans of one model, because hashing the weights again would take
// longer than the rest of planning. Keeps the constants alive, so that an address is never reused for other contents.
// Any thread.
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "ir/literal.hpp"

namespace kiln {

class constant_hashes {
 public:
  content_hash of(const literal& data);

 private:
  struct known_constant {
    literal data;
    content_hash hash;
  };
  std::mutex mutex_;
  // Keyed by address and size.
  std::map<std::pair<const std::byte*, std::size_t>, known_constant> known_;
};

}  // namespace kiln
