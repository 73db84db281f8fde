#include "generation/sequence_state.hpp"

#include <algorithm>
#include <bit>

namespace kiln {

std::span<std::byte> growing_memory::at_least(device& on, std::size_t bytes) {
  constexpr std::size_t least = 4096;
  if (!memory_.data() || memory_.size() < bytes) {
    memory_ = device_memory();
    memory_ = on.allocate(std::bit_ceil(std::max(bytes, least)));
  }
  return {memory_.data(), bytes};
}

std::size_t sequence_state::bytes() const {
  std::size_t sum = 0;
  for (const auto& [key, tensor] : tensors) sum += tensor.type.bytes();
  return sum;
}

}  // namespace kiln
