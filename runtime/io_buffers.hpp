// Memory of the device for one run's inputs and outputs, and the ways of literals into and out of it. Used by one
// thread.
#pragma once

#include <span>
#include <vector>

#include "ir/literal.hpp"
#include "runtime/executable.hpp"

namespace kiln {

class io_buffers {
 public:
  explicit io_buffers(const executable& of);
  // Dense tensors in the order of the plan's inputs; there on return.
  void upload(std::span<const literal> inputs);
  std::vector<literal> download() const;
  // What was written as this output is read as this input, and the other way round; both have the same size.
  void swap(std::size_t output, std::size_t input);
  std::span<const executable::input_span> inputs() const { return inputs_; }
  std::span<const executable::output_span> outputs() const { return outputs_; }

 private:
  const plan* plan_;
  device* device_;
  std::vector<device_memory> memory_;
  std::vector<executable::input_span> inputs_;
  std::vector<executable::output_span> outputs_;
};

}  // namespace kiln
