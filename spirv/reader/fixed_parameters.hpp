// Rewrites a SPIR-V module so that its kernels take buffers only: parameters passed by value become constants of the
// module. This is for external finalizers, whose kernels are launched like native kernels (ir/native_kernel.hpp). Pure
// functions; any thread may call.
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
  // In order: the bits of a number, or none for a buffer.
  std::vector<std::optional<std::uint64_t>> parameters;
  friend bool operator==(const fixed_kernel&, const fixed_kernel&) = default;
};

// Kernels that are not in the list are unchanged. The same module and list give the same bytes. Throws like `binary`
// for modules that it cannot read, and error{corrupted} if a kernel is missing or its parameters do not match.
std::vector<std::byte> fix_parameters(std::span<const std::byte> module, std::span<const fixed_kernel> kernels);

}  // namespace kiln::spirv
