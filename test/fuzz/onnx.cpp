// An ONNX model, imported with a small budget.
#include "aot/onnx/import.hpp"
#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const program p = import_onnx(input, {.max_nodes = 2000});
  p.validate();
}

}  // namespace kiln::fuzzing
