// State of sequences after the ids so far: caches of keys and values, recurrent states, results of the encoder. The
// tensors stay in the memory of the device. A step writes new ones beside those that it reads, then they change places,
// so nothing is copied through the host. Used by one thread at a time; the device must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ir/shape.hpp"
#include "runtime/device.hpp"

namespace kiln {

// Memory that grows in powers of two and is never moved or copied: growing discards the contents.
class growing_memory {
 public:
  std::span<std::byte> at_least(device& on, std::size_t bytes);
  std::byte* data() const { return memory_.data(); }

 private:
  device_memory memory_;
};

struct state_tensor {
  shape type;
  growing_memory now, next;
  // For a cache that is updated in place: the axis of its rows and how many are used. `type` counts all of them.
  struct room {
    std::size_t axis = 0;
    std::int64_t used = 0;
  };
  std::optional<room> rows = {};
  std::span<const std::byte> contents() const { return {now.data(), type.bytes()}; }
  std::size_t used_bytes() const;
};

// Gives a cache room for `room` rows along `axis`. The first `used` rows keep their contents, whether the tensor had
// room for more or not. `type` is that of the cache; its size along the axis is not used. `on` is the tensor's device.
void give_room(device& on, state_tensor& tensor, shape type, std::size_t axis, std::int64_t used, std::int64_t room);

struct sequence_state {
  std::map<std::string, state_tensor> tensors;  // by state_port::key
  std::size_t bytes() const;                    // of all tensors, without spare room
};

}  // namespace kiln
