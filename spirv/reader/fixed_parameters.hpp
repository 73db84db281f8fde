// A SPIR-V module whose kernels take buffers only: what they took by value has become constants of the module. For
// finalizers that are not ours and launch as native kernels are launched (ir/native_kernel.hpp). Pure functions; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln::spirv {

struct fixed_kernel {
  std::string symbol;
  std::vector<std::optional<std::uint64_t>> parameters;  // in order: the bits of a number, or none for a buffer
  friend bool operator==(const fixed_kernel&, const fixed_kernel&) = default;
};

// Kernels that are not in the list stay as they are. The same module and list give the same bytes. Throws as `binary`
// does for what it cannot read; error{corrupted} where a kernel is not there, or does not take such parameters.
std::vector<std::byte> fix_parameters(std::span<const std::byte> module, std::span<const fixed_kernel> kernels);

}  // namespace kiln::spirv
