// What code generation knows of a target: one row of data. The rows are in jit/targets.cpp; a new target is a new row.
#pragma once

#include <cstdint>
#include <string>

#include "ir/enum_names.hpp"

namespace kiln {

enum class target_family : std::uint8_t { cpu, amdgpu, nvidia };
template <>
struct enum_table<target_family> {
  static constexpr std::array<std::string_view, 3> names{"cpu", "amdgpu", "nvidia"};
};

struct target_row {
  std::string name;             // "x86-64-v4"
  target_family family = target_family::cpu;
  std::string triple;           // LLVM's
  std::string processor;        // LLVM's -mcpu
  std::string features;         // LLVM's -mattr, "+avx512f,+..."
  int vector_bits = 256;        // of one vector register
  int vector_registers = 16;    // architectural
  std::int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;  // data caches that blocking may count on
};

}  // namespace kiln
