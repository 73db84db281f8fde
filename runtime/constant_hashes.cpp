#include "runtime/constant_hashes.hpp"

namespace kiln {

content_hash constant_hashes::of(const literal& data) {
  const std::pair key{data.address(), data.byte_count()};
  {
    std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end() && found->second.data.type() == data.type()) return found->second.hash;
  }
  known_constant fresh{data, data.identity()};
  const content_hash hash = fresh.hash;
  std::lock_guard lock(mutex_);
  known_.insert_or_assign(key, std::move(fresh));
  return hash;
}

}  // namespace kiln
