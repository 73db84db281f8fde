// What identifies the machine code of one function: two functions with equal identities do the same with the same
// arguments, whatever else is in their objects and whatever they are called. Packed weights are kept under it
// (runtime/prepare.cpp). Any thread.
#pragma once

#include <optional>
#include <string_view>

#include "ir/hash.hpp"
#include "runtime/elf_object.hpp"

namespace kiln {

// Covers the function's bytes and, transitively, all that its relocations refer to: other functions, constants, names
// of external functions. nullopt where that cannot be told apart from the rest of the object: the section holds code
// that may be reached without a relocation (a local function, bytes of no function), the function has no size, or it
// refers to memory that is written. Throws error{corrupted}.
std::optional<content_hash> code_identity(const elf_object& object, std::string_view function);

}  // namespace kiln
