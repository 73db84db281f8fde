#include "runtime/io_buffers.hpp"

#include <algorithm>
#include <utility>

#include "ir/ops/bounded.hpp"
#include "runtime/arena.hpp"

namespace kiln {
namespace {

// What a tensor of so many bytes takes in the block.
std::size_t room_of(std::size_t bytes, const device& on) {
  const std::size_t alignment = std::max(arena_alignment, on.info().alignment);
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

io_buffers::io_buffers(const executable& of) : plan_(&of.plan()), device_(&of.target()) {
  memory_ = device_->allocate(bytes_of(of));
  place(memory_.data());
}

io_buffers::io_buffers(const executable& of, std::byte* block) : plan_(&of.plan()), device_(&of.target()) {
  place(block);
}

void io_buffers::place(std::byte* block) {
  auto next = [&](std::size_t bytes) {
    return std::span(std::exchange(block, block + room_of(bytes, *device_)), bytes);
  };
  for (const plan_port& port : plan_->inputs) inputs_.push_back(next(port.bytes));
  for (const plan_port& port : plan_->outputs)
    outputs_.push_back(port.shares ? of_input(*port.shares) : next(port.bytes));
}

std::span<std::byte> io_buffers::of_input(std::size_t number) const {
  return {const_cast<std::byte*>(inputs_[number].data()), inputs_[number].size()};
}

std::size_t io_buffers::bytes_of(const executable& of) {
  std::size_t bytes = 0;
  for (const plan_port& port : of.plan().inputs) bytes += room_of(port.bytes, of.target());
  for (const plan_port& port : of.plan().outputs)
    if (!port.shares) bytes += room_of(port.bytes, of.target());
  return bytes;
}

void io_buffers::upload(std::span<const literal> inputs) {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (plan_->inputs[i].used)
      device_->upload(const_cast<std::byte*>(inputs_[i].data()), inputs[i].bytes().data(), inputs_[i].size());
  device_->synchronize();
}

void io_buffers::swap(std::size_t output, std::size_t input) {
  const executable::input_span was = inputs_[input];
  inputs_[input] = outputs_[output];
  outputs_[output] = {const_cast<std::byte*>(was.data()), was.size()};
}

std::vector<literal> io_buffers::download() const {
  std::vector<literal> results;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    std::vector<std::byte> bytes(outputs_[i].size());
    device_->download(bytes.data(), outputs_[i].data(), bytes.size());
    results.emplace_back(plan_->outputs[i].type, std::move(bytes));
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    for (const bounded_axis& c : plan_->outputs[i].bounded)
      results[i] = first_of(results[i], static_cast<std::int64_t>(c.axis), results[c.count].at_int(0));
  return results;
}

}  // namespace kiln
