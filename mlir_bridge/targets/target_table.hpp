// The targets that kernels can be finalized for: one row of data each (docs/add_a_target.md). Adding a target adds a
// row. Needs no LLVM; targets by what a user calls them, this machine's own among them, are jit/targets.hpp's.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// The LLVM triples of CPU rows.
inline constexpr const char* x86_triple = "x86_64-unknown-linux-gnu";
inline constexpr const char* arm_triple = "aarch64-unknown-linux-gnu";

std::span<const target_row> targets();

// Returns null if the table has no row of that name.
const target_row* find_row(std::string_view name);

// Everything in the row that generated code depends on, as one string for cache keys.
std::string describe(const target_row& row);

}  // namespace kiln
