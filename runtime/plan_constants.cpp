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
  auto it = buffers_.find({data.address(), data.byte_count(), element_alignment(data.type().type)});
  return it == buffers_.end() ? std::nullopt : std::optional(it->second);
}

void plan_constants::add(buffer_id id, const literal& data) {
  std::size_t alignment = element_alignment(data.type().type), bytes = data.byte_count();
  buffers_.emplace(storage{data.address(), bytes, alignment}, id);
  plan_.report.constant_bytes += bytes;
  plan_buffer& buffer = plan_.buffers[id];
  if (std::uint64_t bits = 0; bytes <= sizeof bits) {
    if (bytes) std::memcpy(&bits, data.bytes().data(), bytes);
    buffer.known = bits;
  }
  literals_.emplace(id, data);
  if (!device_.info().host_memory) return;
  buffer.address = data.address();
  if (reinterpret_cast<std::uintptr_t>(buffer.address) % alignment != 0) {
    auto copy = std::make_shared<device_memory>(device_.allocate(bytes));
    device_.upload(copy->data(), data.bytes().data(), bytes);
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
  auto [it, is_new] = hashes_.try_emplace({data.address(), data.byte_count()});
  if (is_new) it->second = shared_ ? shared_->of(data) : data.identity();
  return it->second;
}

const std::byte* plan_constants::address(buffer_id id) {
  plan_buffer& buffer = plan_.buffers[id];
  const literal& data = literals_.at(id);
  if (device_.info().host_memory) data.bytes();  // verifies what is about to be read
  if (buffer.address || buffer.bytes == 0) return buffer.address;
  const content_hash& key = hash_of(data);
  auto memory = device_.shared().find(key);
  if (!memory) {
    auto made = std::make_shared<device_memory>(device_.allocate(data.byte_count()));
    device_.upload(made->data(), data.bytes().data(), data.byte_count());
    memory = device_.shared().add(key, std::move(made));
  }
  buffer.address = memory->data();
  uploaded_[id] = std::move(memory);
  return buffer.address;
}

const std::byte* plan_constants::temporary_address(buffer_id id) {
  constexpr std::size_t least_bytes = std::size_t{1} << 20;
  const literal& data = literals_.at(id);
  const std::size_t bytes = data.byte_count();
  if (plan_.buffers[id].address || bytes < least_bytes) return address(id);
  if (const auto found = temporary_.find(id); found != temporary_.end()) return found->second.data();
  auto& other = borrowed_[id];
  if (other || (other = device_.shared().find(hash_of(data)))) return other->data();
  const auto room = std::ranges::find_if(rooms_, [&](const device_memory& each) { return each.size() >= bytes; });
  device_memory memory = room != rooms_.end() ? std::move(*room) : device_.allocate(bytes);
  if (room != rooms_.end()) rooms_.erase(room);
  device_.upload(memory.data(), data.bytes().data(), bytes);
  return temporary_.emplace(id, std::move(memory)).first->second.data();
}

void plan_constants::release() {
  // A very large room would be in the way of what is made next.
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  for (auto& [id, memory] : temporary_)
    if (!kept_ && memory.size() <= most_bytes) rooms_.push_back(std::move(memory));
  temporary_.clear();
  borrowed_.clear();
}

void plan_constants::keep(const std::set<buffer_id>& read) {
  if (device_.info().host_memory) {
    for (const auto& [id, data] : literals_)
      if (read.contains(id)) data.bytes();  // verifies it: steps read the address
    return;
  }
  rooms_.clear();
  kept_ = true;
  for (const auto& [id, data] : literals_) {
    if (!read.contains(id)) {
      plan_.buffers[id].address = nullptr;
      continue;
    }
    if (!address(id)) continue;
    plan_.owners.push_back(uploaded_.at(id));
    plan_.report.constant_device_bytes += data.byte_count();
  }
  uploaded_.clear();
}

}  // namespace kiln
