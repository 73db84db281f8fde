#include "runtime/io_buffers.hpp"

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
  for (std::size_t i = 0; i < inputs_.size(); ++i) device_->upload(const_cast<std::byte*>(inputs_[i].data()), inputs[i].bytes().data(), inputs_[i].size());
  device_->synchronize();
}

std::vector<literal> io_buffers::download() const {
  std::vector<literal> results;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    std::vector<std::byte> bytes(outputs_[i].size());
    device_->download(bytes.data(), outputs_[i].data(), bytes.size());
    results.emplace_back(plan_->outputs[i].type, std::move(bytes));
  }
  return results;
}

}  // namespace kiln
