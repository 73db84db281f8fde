#include "generation/sequence_batch.hpp"

namespace kiln {
namespace {

growing_memory copy_of(device& on, const growing_memory& memory, std::size_t bytes) {
  growing_memory result;
  const auto to = result.at_least(on, bytes);
  if (bytes > 0) on.copy(to.data(), memory.data(), bytes);
  return result;
}

}  // namespace

sequence_batch copy_of(device& on, const sequence_batch& batch) {
  sequence_batch result;
  for (const auto& [key, tensor] : batch.state.tensors)
    result.state.tensors.emplace(
        key, state_tensor{tensor.type, copy_of(on, tensor.now, tensor.type.bytes()), {}, tensor.rows});
  if (const auto& encoded = batch.encoded)
    result.encoded.emplace(encoded->type, copy_of(on, encoded->states, encoded->type.bytes()), encoded->mask);
  on.synchronize();
  result.history = batch.history, result.masks = batch.masks, result.past = batch.past;
  return result;
}

}  // namespace kiln
