// Results that a kernel stores in a narrow type, because those that read them widen them on their own. Internal to
// partition.cpp.
#pragma once

#include <cstddef>
#include <functional>

#include "ir/module.hpp"

namespace kiln {

// The position of an instruction in its module.
using instruction_numbers = std::function<std::size_t(const instruction&)>;

// Returns true if the readers of a dequantized tensor should dequantize it themselves, because the 8-bit tensor takes
// less memory. Returns false if the readers are in the same kernel as the dequantization, or need the float tensor in
// memory.
bool readers_dequantize(const instruction& at, const instruction_numbers& number);

// Returns true if the readers of a rounded number should widen it themselves: a kernel that they do not belong to
// stores the rounded one then, which takes less memory.
bool readers_widen_rounded(const instruction& at, const instruction_numbers& number);

}  // namespace kiln
