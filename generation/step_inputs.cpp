#include "generation/step_inputs.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kiln {
namespace {

constexpr std::size_t least_room = 64;  // and alignment

}  // namespace

void step_inputs::make_room(device& on, device_stream& stream, std::span<const std::vector<std::byte>> tensors) {
  slots_.resize(tensors.size());
  const auto fits = [&](const auto& t) {
    return t.size() <= slots_[static_cast<std::size_t>(&t - tensors.data())].room;
  };
  if (std::ranges::all_of(tensors, fits)) return;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    slots_[i].room = std::bit_ceil(std::max({tensors[i].size(), slots_[i].room, least_room}));
  // The small ones change in every step and lie together; of a long mask only the end changes.
  std::vector<slot*> by_room;
  for (slot& s : slots_) by_room.push_back(&s);
  std::ranges::stable_sort(by_room, {}, &slot::room);
  std::size_t end = 0;
  for (slot* s : by_room) {
    s->offset = end;
    end += s->room;
  }
  on.synchronize(&stream);  // an earlier step may still read the old block
  block_ = device_memory();
  block_ = on.allocate(end);
  sent_.assign(end, {});
  on.upload(block_.data(), sent_.data(), end, &stream);
}

std::size_t step_inputs::upload(device& on, device_stream& stream, std::span<const std::vector<std::byte>> tensors) {
  make_room(on, stream, tensors);
  std::size_t begin = sent_.size(), end = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<std::byte>& bytes = tensors[i];
    slots_[i].bytes = bytes.size();
    std::byte* old = sent_.data() + slots_[i].offset;
    const auto same = std::ranges::mismatch(bytes, std::span(old, bytes.size())).in1 - bytes.begin();
    if (same == std::ssize(bytes)) continue;
    std::ranges::copy(bytes, old);
    begin = std::min(begin, slots_[i].offset + static_cast<std::size_t>(same));
    end = std::max(end, slots_[i].offset + bytes.size());
  }
  if (begin >= end) return 0;
  on.upload(block_.data() + begin, sent_.data() + begin, end - begin, &stream);
  return end - begin;
}

std::span<const std::byte> step_inputs::operator[](std::size_t place) const {
  return {block_.data() + slots_[place].offset, slots_[place].bytes};
}

}  // namespace kiln
