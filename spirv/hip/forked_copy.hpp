// Runs work in a forked copy of this process. A crash, an abort or an endless loop in the copy becomes an error here
// and does not end this process. This is needed because Clang and LLVM's SPIR-V back end abort on fatal errors and
// recurse as deeply as the source nests.
// Any number of threads may call at once. Throws error{io} if the process cannot be forked.
#pragma once

#include <functional>
#include <string>

namespace kiln::spirv {

struct copy_limits {
  unsigned cpu_seconds = 120;
  // Stack size if the work runs on the process's main stack.
  std::size_t stack_bytes = std::size_t{64} << 20;
};

// Returns the result of `work`, which must not throw. Throws error{unsupported} with `who` if the copy crashed,
// exceeded its time, or aborted with an LLVM message.
std::string in_forked_copy(const std::string& who, const std::function<std::string()>& work,
                           const copy_limits& limits = {});

}  // namespace kiln::spirv
