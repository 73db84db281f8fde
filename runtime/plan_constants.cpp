#include "runtime/plan_constants.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/constant_hashes.hpp"

namespace kiln {
namespace {

std::size_t element_alignment(element_type type) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(storage_bits(type)) / 8);
}

}  // namespace

std::optional<buffer_id> plan_constants::find(const literal& data) const {
  auto it = buffers_.find({data.bytes().data(), data.bytes().size(), element_alignment(data.type().type)});
  return it == buffers_.end() ? std::nullopt : std::optional(it->second);
}

void plan_constants::add(buffer_id id, const literal& data) {
  std::size_t alignment = element_alignment(data.type().type), bytes = data.bytes().size();
  buffers_.emplace(storage{data.bytes().data(), bytes, alignment}, id);
  plan_.report.constant_bytes += bytes;
  plan_buffer& buffer = plan_.buffers[id];
  if (std::uint64_t bits = 0; bytes <= sizeof bits) {
    if (bytes) std::memcpy(&bits, data.bytes().data(), bytes);
    buffer.known = bits;
  }
  literals_.emplace(id, data);
  if (!device_.info().host_memory) return;
  buffer.address = data.bytes().data();
  if (reinterpret_cast<std::uintptr_t>(buffer.address) % alignment != 0) {
    auto copy = std::make_shared<device_memory>(device_.allocate(bytes));
    device_.upload(copy->data(), buffer.address, bytes);
    buffer.address = copy->data();
    plan_.report.constant_copied_bytes += bytes;
    plan_.owners.push_back(std::move(copy));
  }
  plan_.owners.push_back(std::make_shared<literal>(data));
}

const literal* plan_constants::literal_of(buffer_id id) const {
  auto it = literals_.find(id);
  return it == literals_.end() ? nullptr : &it->second;
}

const content_hash& plan_constants::hash_of(const literal& data) {
  auto [it, is_new] = hashes_.try_emplace({data.bytes().data(), data.bytes().size()});
  if (is_new) it->second = shared_ ? shared_->of(data) : data.identity();
  return it->second;
}

const std::byte* plan_constants::address(buffer_id id) {
  plan_buffer& buffer = plan_.buffers[id];
  if (buffer.address || buffer.bytes == 0) return buffer.address;
  const literal& data = literals_.at(id);
  const content_hash& key = hash_of(data);
  auto memory = device_.shared().find(key);
  if (!memory) {
    auto made = std::make_shared<device_memory>(device_.allocate(data.bytes().size()));
    device_.upload(made->data(), data.bytes().data(), data.bytes().size());
    memory = device_.shared().add(key, std::move(made));
  }
  buffer.address = memory->data();
  uploaded_[id] = std::move(memory);
  return buffer.address;
}

void plan_constants::keep(const std::set<buffer_id>& read) {
  if (device_.info().host_memory) return;
  for (const auto& [id, data] : literals_) {
    if (!read.contains(id)) {
      plan_.buffers[id].address = nullptr;
      continue;
    }
    if (!address(id)) continue;
    plan_.owners.push_back(uploaded_.at(id));
    plan_.report.constant_device_bytes += data.bytes().size();
  }
  uploaded_.clear();
}

}  // namespace kiln
