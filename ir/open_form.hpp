// Which kernels with open dimensions can be compiled once for all sizes, as open kernels (ir/native_kernel.hpp). Kernel
// formation finds out and records it in the program's metadata, because only it sees the operations of a kernel without
// parsing MLIR. Readers that do not know the entries ignore them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/program.hpp"

namespace kiln {

// Processors differ in what they have open kernels of.
enum class processor : std::uint8_t { cpu, gpu };

// `payload`: the hex hash of the kernel's payload. `missing`: the operation that has no code for all sizes; empty if
// the kernel can be compiled for all of them.
void record_open_form(program& p, const std::string& payload, processor on, const std::string& missing);

// What was recorded; nullopt for a kernel without open dimensions, and in files of older versions.
std::optional<std::string> recorded_missing_form(const program& p, const std::string& payload, processor on);

}  // namespace kiln
