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

std::size_t state_tensor::used_bytes() const {
  if (!rows) return type.bytes();
  shape used = type;
  used.dims[rows->axis] = rows->used;
  return used.bytes();
}

void give_room(device& on, state_tensor& tensor, shape type, std::size_t axis, std::int64_t used, std::int64_t room) {
  const auto dims = type.static_dims();
  std::size_t outer = 1, row = storage_bytes(type.type, 1);
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(dims[i]);
  for (std::size_t i = axis + 1; i < dims.size(); ++i) row *= static_cast<std::size_t>(dims[i]);
  type.dims[axis] = room;
  growing_memory larger;
  const auto to = larger.at_least(on, type.bytes());
  if (used > 0) {
    const auto before = static_cast<std::size_t>(tensor.type.dims[axis].value());
    for (std::size_t o = 0; o < outer; ++o)
      on.copy(to.data() + o * static_cast<std::size_t>(room) * row, tensor.now.data() + o * before * row,
              static_cast<std::size_t>(used) * row);
    on.synchronize();
  }
  tensor.type = std::move(type), tensor.now = std::move(larger), tensor.next = {};
  tensor.rows = {axis, used};
}

std::size_t sequence_state::bytes() const {
  std::size_t sum = 0;
  for (const auto& [key, tensor] : tensors) sum += tensor.used_bytes();
  return sum;
}

}  // namespace kiln
