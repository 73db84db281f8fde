// Links one AMDGPU relocatable object into a code object (a shared ELF that the HIP runtime loads), with LLD in this
// process. No file system is involved: the object goes in through a memfd and comes out through a pipe, both named by
// /proc/self/fd.
//
// Threads: any; links happen one after another, since LLD keeps global state. Nothing is printed.
// Errors: error{compile_failed} with LLD's words for what does not link; error{io} when the system has no file
// descriptors.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kiln::gpu {

std::vector<std::byte> link_code_object(std::span<const std::byte> relocatable);

}  // namespace kiln::gpu
