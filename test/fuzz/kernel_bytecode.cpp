// The check of a kernel's bytecode. What it lets pass is for MLIR's reader: test/long/mutate_kernels.cpp goes on to it.
#include "mlir_bridge/kernel/bytecode_check.hpp"

#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) { check_kernel_bytecode(input); }

}  // namespace kiln::fuzzing
