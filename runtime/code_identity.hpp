// A content hash for the machine code of one function. Functions with equal identities behave the same for the same
// arguments, whatever their names are and whatever else their objects contain. Prepared weights are stored under it
// (runtime/prepare.cpp). Any thread.
#pragma once

#include <optional>
#include <string_view>

#include "ir/hash.hpp"
#include "runtime/elf_object.hpp"

namespace kiln {

// Covers the function's bytes and, transitively, everything that its relocations refer to: other functions, constants,
// and names of external functions. Returns nullopt if the function's code cannot be separated from the rest of the
// object: its section holds code that may be reached without a relocation (a local function, or bytes outside of any
// function), the function has no size, or it refers to writable memory. Throws error{corrupted}.
std::optional<content_hash> code_identity(const elf_object& object, std::string_view function);

}  // namespace kiln
