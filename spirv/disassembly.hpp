// Human-readable SPIR-V: the disassembly of SPIRV-Tools. Throws error{corrupted} for words that cannot be disassembled.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kiln::spirv {

std::string disassemble(std::span<const std::byte> words);

}  // namespace kiln::spirv
