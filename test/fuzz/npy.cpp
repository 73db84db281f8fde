// A NumPy file.
#include "tools/npy.hpp"

#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const literal read = tools::read_npy(as_file(input));
  require(read.bytes().size() <= 2 * input.size() + 64, "a tensor is not larger than its file");
}

}  // namespace kiln::fuzzing
