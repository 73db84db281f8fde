// The processors that code is generated for, one row of data each. The compiler makes target rows of them
// (mlir_bridge/targets), and the runtime, which has no compiler, asks them what a kernel needs (runtime/host_features).
// Rows of one architecture go from the most general to the most special; a machine gets the last one that runs on it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "ir/enum_names.hpp"

namespace kiln {

enum class cpu_architecture : std::uint8_t { x86_64, aarch64 };
template <>
struct enum_table<cpu_architecture> {
  static constexpr std::array<std::string_view, 2> names{"x86_64", "aarch64"};
};

struct cpu_row {
  std::string_view name;  // what --target takes: "x86-64-v4"
  cpu_architecture architecture = cpu_architecture::x86_64;
  std::string_view processor;  // LLVM's -mcpu
  // LLVM's -mattr. The processor must have all of them; those of 64-bit Arm that Linux does not report are version
  // numbers, which only name sets of instructions.
  std::string_view features;
  int vector_bits = 128;  // with "+sve", the processor's vectors must have exactly this length
  int vector_registers = 32;
  std::int64_t l1_bytes = 0, l2_bytes = 0;  // data caches of one core that blocking may count on
  // The designer of the cores (MIDR_EL1, bits 31 to 24) that this row is for; 0: any. A machine gets such a row only if
  // the number is its own.
  unsigned designer = 0;
  std::string_view products, source;  // for people
};

std::span<const cpu_row> cpu_rows();

// Returns null if the table has no row of that name.
const cpu_row* find_cpu_row(std::string_view name);

// The architecture that this program is built for.
#if defined(__aarch64__)
inline constexpr cpu_architecture this_architecture = cpu_architecture::aarch64;
#else
inline constexpr cpu_architecture this_architecture = cpu_architecture::x86_64;
#endif

}  // namespace kiln
