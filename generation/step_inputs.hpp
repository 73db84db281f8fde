// The inputs of a step that are no state: ids, positions, mask, lengths. They lie in one block of the device's memory,
// and one copy brings what has changed since the step before. Used by one thread at a time; the device must outlive it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/device.hpp"

namespace kiln {

class step_inputs {
 public:
  // `tensors`: the bytes of each input; of inputs that are not here, none. The number of inputs is the same in all
  // calls. Earlier steps that read the block must have ended or run on `stream`. Returns the number of bytes copied.
  std::size_t upload(device& on, device_stream& stream, std::span<const std::vector<std::byte>> tensors);
  // Tensor number `place` in the device's memory, of as many bytes as were given. Its address changes only when a
  // tensor grows beyond a power of two.
  std::span<const std::byte> operator[](std::size_t place) const;

 private:
  struct slot {
    std::size_t offset = 0, room = 0, bytes = 0;
  };
  void make_room(device& on, device_stream& stream, std::span<const std::vector<std::byte>> tensors);

  std::vector<slot> slots_;
  std::vector<std::byte> sent_;  // what the block holds
  device_memory block_;
};

}  // namespace kiln
