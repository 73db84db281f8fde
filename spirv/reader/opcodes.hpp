// SPIR-V's numbers, and the instructions that the reader knows. Internal to spirv/reader.
#pragma once

#define SPV_ENABLE_UTILITY_CODE
#include <spirv/unified1/spirv.hpp11>
#undef SPV_ENABLE_UTILITY_CODE

namespace kiln::spirv {

bool is_known(spv::Op opcode);

}  // namespace kiln::spirv
