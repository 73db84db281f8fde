// Which kernels of a program can be compiled once for all sizes (open kernels, ir/native_kernel.hpp). For kernels of
// fusions, kernel formation recorded it (ir/open_form.hpp). A HIP kernel has such a form if its rules can be evaluated
// for open dims. Pure functions; any thread may call them.
#pragma once

#include <optional>
#include <string>

#include "ir/open_form.hpp"
#include "ir/program.hpp"

namespace kiln {

// Returns the operation of the kernel that has no form for all sizes on such processors, empty if the kernel has one.
// nullopt for kernels without open dims, for native ones, and for fusions in files of older versions. `kernel` is a
// code object of `p`.
std::optional<std::string> missing_open_form(const program& p, const instruction& kernel, processor on);

}  // namespace kiln
