// Links one AMDGPU relocatable object into a code object (a shared ELF that the HIP runtime loads), with LLD in this
// process. Nothing is written to the file system: the input is a memfd and the output a pipe, both named by
// /proc/self/fd.
//
// Any thread may call; links are serialized, because LLD keeps global state. Nothing is printed.
// Errors: error{compile_failed} with LLD's message if the object does not link; error{io} if no file descriptors are
// left.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kiln::gpu {

std::vector<std::byte> link_code_object(std::span<const std::byte> relocatable);

}  // namespace kiln::gpu
