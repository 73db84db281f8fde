// SPIR-V as text, for people: SPIRV-Tools' disassembly. Throws error{corrupted} for words that it cannot read.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kiln::spirv {

std::string disassemble(std::span<const std::byte> words);

}  // namespace kiln::spirv
