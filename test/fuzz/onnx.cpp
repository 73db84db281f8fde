// An ONNX model, imported with a small budget.
#include "aot/onnx/import.hpp"

#include <spdlog/spdlog.h>

#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  spdlog::set_level(spdlog::level::off);
  const program p = import_onnx(input, {.max_nodes = 2000});
  p.validate();
}

}  // namespace kiln::fuzzing
