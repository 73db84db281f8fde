// Records which kernels with open dimensions can be compiled once for all sizes as open kernels (ir/native_kernel.hpp).
// Kernel formation determines this and records it in the program's metadata. Only kernel formation sees the operations
// of a kernel without parsing MLIR. Readers that do not support the entries ignore them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/program.hpp"

namespace kiln {

// The kinds of processors, which support different operations in open kernels.
enum class processor : std::uint8_t { cpu, gpu };

// `payload` is the hex hash of the kernel's payload. `missing` is the operation that cannot be compiled for all sizes;
// empty if the kernel can.
void record_open_form(program& p, const std::string& payload, processor on, const std::string& missing);

// Returns the recorded value of `missing`; nullopt for kernels without open dimensions, and in files of older versions.
std::optional<std::string> recorded_missing_form(const program& p, const std::string& payload, processor on);

}  // namespace kiln
