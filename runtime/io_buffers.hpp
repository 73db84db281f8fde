// Device memory for the inputs and outputs of a run, with copies of literals into and out of it. Used by one thread.
#pragma once

#include <span>
#include <vector>

#include "ir/literal.hpp"
#include "runtime/executable.hpp"

namespace kiln {

class io_buffers {
 public:
  explicit io_buffers(const executable& of);
  // With all tensors in one block of at least bytes_of(of) bytes, which must outlive this object.
  io_buffers(const executable& of, std::byte* block);
  static std::size_t bytes_of(const executable& of);
  // Uploads dense tensors in the order of the plan's inputs, without those that nothing reads; complete on return.
  void upload(std::span<const literal> inputs);
  std::vector<literal> download() const;
  // Swaps the memory of an output and an input, so that the next run reads what this run wrote. Both must have the same
  // size.
  void swap(std::size_t output, std::size_t input);
  std::span<const executable::input_span> inputs() const { return inputs_; }
  std::span<const executable::output_span> outputs() const { return outputs_; }

 private:
  void place(std::byte* block);
  std::span<std::byte> of_input(std::size_t number) const;
  const plan* plan_;
  device* device_;
  device_memory memory_;  // of all tensors; empty if the block is the caller's
  std::vector<executable::input_span> inputs_;
  std::vector<executable::output_span> outputs_;
};

}  // namespace kiln
