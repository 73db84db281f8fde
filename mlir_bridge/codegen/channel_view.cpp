#include "mlir_bridge/codegen/channel_view.hpp"

#include "ir/channel_range.hpp"

namespace kiln::codegen {

std::optional<channel_view> find_channels(const kernel_emitter& e, value image) {
  if (auto memory = e.in_memory(image)) return channel_view{*memory};
  const auto first = first_of_channels(*image.producer);
  if (!first) return std::nullopt;
  auto whole = find_channels(e, image.producer->inputs()[0]);
  if (whole) whole->first += *first;
  return whole;
}

channel_view materialize_channels(kernel_emitter& e, value image) {
  if (auto view = find_channels(e, image)) return *view;
  return {e.materialize(image)};
}

}  // namespace kiln::codegen
