// Lists of 64-bit numbers in FlatBuffers that may be damaged. Only .cpp files that read FlatBuffers should include it.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>

#include "ir/error.hpp"

namespace kiln {

// Returns the length of a vector of 64-bit numbers, or of structs of them; null counts as empty. Throws
// error{corrupted} if the elements are misaligned: they are read in place, and the verifier of FlatBuffers 2 does not
// check their alignment.
template <class T>
std::size_t aligned_count(const flatbuffers::Vector<T>* list) {
  if (!list || list->size() == 0) return 0;
  if (reinterpret_cast<std::uintptr_t>(list->Data()) % alignof(std::uint64_t) != 0)
    throw error(error_kind::corrupted, "a list of numbers is not aligned");
  return list->size();
}

}  // namespace kiln
