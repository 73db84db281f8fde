// Errors of code objects that cannot be read. Internal to back_ends/amd.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "ir/error.hpp"
#include "llvm/Support/Error.h"

namespace kiln::gpu {

[[noreturn]] inline void throw_corrupted(std::string_view what) {
  throw error(error_kind::corrupted, fmt::format("damaged code object: {}", what));
}

// Returns the value that one of LLVM's readers gives; throws error{corrupted} with its message if it gives none.
template <class T>
T value_or_throw(llvm::Expected<T> value) {
  if (!value) throw_corrupted(llvm::toString(value.takeError()));
  return std::move(*value);
}

}  // namespace kiln::gpu
