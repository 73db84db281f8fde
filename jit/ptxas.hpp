// NVIDIA's assembler out of the CUDA toolkit, where the machine has one: PTX to a cubin, in a child process. The
// driver's own compiler needs no toolkit, but what it gives back to be kept it has compiled to be linked: registers
// then do not move between warpgroups. Any thread, several at once.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct ptxas_tool {
  std::string executable;
  std::string version;  // "12.8.93"
};

// The folders of PATH, then where the toolkit is installed.
std::vector<std::filesystem::path> ptxas_folders();

// The first one in `folders` whose release the driver runs: not newer than `driver_version` ("12.8"). An executable
// that does not say what it is, is passed over.
std::optional<ptxas_tool> find_ptxas(std::string_view driver_version,
                                     const std::vector<std::filesystem::path>& folders = ptxas_folders());

// For the architecture that the text names. Objects that are no PTX come back as they are. Throws error{compile_failed}
// with ptxas' last line, error{timed_out}, error{io}.
std::vector<std::byte> assemble_ptx(const ptxas_tool& tool, std::span<const std::byte> object);

}  // namespace kiln
