#include "runtime/device.hpp"

#include "ir/error.hpp"
#include "runtime/graph/device_graph.hpp"

namespace kiln {

void device::encode(const tensor_map&, void*, encoded_tensor_map*) {
  throw error(error_kind::unsupported,
              "device " + info().name + " has no tensor maps: finalize the program for this device");
}

std::unique_ptr<device_graph> device::make_graph(graph_maker) {
  throw error(error_kind::unsupported, "device " + info().name + " has no graphs");
}

std::shared_ptr<const device_memory> shared_buffers::find(const content_hash& key) {
  std::lock_guard lock(mutex_);
  auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : it->second.lock();
}

std::shared_ptr<const device_memory> shared_buffers::add(const content_hash& key,
                                                         std::shared_ptr<const device_memory> memory) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = entries_[key];
  if (auto first = entry.lock()) return first;
  entry = memory;
  return memory;
}

}  // namespace kiln
