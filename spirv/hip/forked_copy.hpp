// Work in a forked copy of this process, whose crash, end or endless loop is an error here and not the end of this
// process: Clang and LLVM's SPIR-V back end abort where they give up, and recurse as deeply as a source says.
//
// Any number of threads at once. Throws error{io} where no copy can be made.
#pragma once

#include <functional>
#include <string>

namespace kiln::spirv {

struct copy_limits {
  unsigned cpu_seconds = 120;
  std::size_t stack_bytes = std::size_t{64} << 20;  // where the work is done on the process's first stack
};

// What `work` returned. error{unsupported}: `who` crashed, did not come to an end, or gave up with LLVM's words. `work`
// throws nothing.
std::string in_forked_copy(const std::string& who, const std::function<std::string()>& work,
                           const copy_limits& limits = {});

}  // namespace kiln::spirv
