// SPIR-V's enumerations, and the set of supported instructions. Internal to spirv/reader.
#pragma once

#define SPV_ENABLE_UTILITY_CODE
#include <spirv/unified1/spirv.hpp11>
#undef SPV_ENABLE_UTILITY_CODE

namespace kiln::spirv {

bool is_known(spv::Op opcode);

}  // namespace kiln::spirv
