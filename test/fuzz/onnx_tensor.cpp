// A tensor as ONNX's test data has it: input_0.pb.
#include "aot/onnx/read_tensor.hpp"
#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const literal read = read_onnx_tensor(as_file(input));
  require(read.bytes().size() <= 16 * input.size() + 64, "a tensor is not larger than its message allows");
}

}  // namespace kiln::fuzzing
