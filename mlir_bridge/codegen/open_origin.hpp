// What a kernel for given sizes knows of the kernel for all sizes that it was made of (portable_kernel::specialize).
// Kernels for several sizes are then loaded together, and what they make of weights should serve all of them. Plain
// data.
#pragma once

#include <cstdint>
#include <optional>

#include "mlir_bridge/kernel/kernel_configuration.hpp"

namespace kiln::codegen {

struct open_origin {
  // Of the last output, over its last axis but one, where all symbols are 1; at least 1.
  std::int64_t fewest_rows = 1;
  std::uint64_t static_inputs = 0;  // bit i: input i has the same sizes in all kernels, as weights have

  bool is_static(std::uint32_t input) const { return input < 64 && (static_inputs >> input & 1) != 0; }
};

// The origin travels to the generators as entries of the configuration.
inline void add_origin(kernel_configuration& to, const open_origin& origin) {
  to["origin_rows"] = origin.fewest_rows;
  to["origin_inputs"] = static_cast<std::int64_t>(origin.static_inputs);
}
// Returns nullopt if the kernel has always had its sizes.
inline std::optional<open_origin> find_origin(const kernel_configuration& in) {
  if (!in.contains("origin_rows")) return std::nullopt;
  return open_origin{choose(in, "origin_rows", 1), static_cast<std::uint64_t>(choose(in, "origin_inputs", 0))};
}

}  // namespace kiln::codegen
