#include "runtime/io_buffers.hpp"

#include "ir/ops/bounded.hpp"

namespace kiln {

io_buffers::io_buffers(const executable& of) : plan_(&of.plan()), device_(&of.target()) {
  auto make = [&](std::size_t bytes) {
    memory_.push_back(device_->allocate(bytes));
    return std::span<std::byte>(memory_.back().data(), bytes);
  };
  for (const plan_port& port : plan_->inputs) inputs_.push_back(make(port.bytes));
  for (const plan_port& port : plan_->outputs) outputs_.push_back(make(port.bytes));
}

void io_buffers::upload(std::span<const literal> inputs) {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    device_->upload(const_cast<std::byte*>(inputs_[i].data()), inputs[i].bytes().data(), inputs_[i].size());
  device_->synchronize();
}

void io_buffers::swap(std::size_t output, std::size_t input) {
  std::size_t a = inputs_.size() + output;  // index in memory_
  std::swap(memory_[a], memory_[input]);
  inputs_[input] = {memory_[input].data(), inputs_[input].size()};
  outputs_[output] = {memory_[a].data(), outputs_[output].size()};
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
