// Runs ptxas of the CUDA toolkit, if it is installed, in a child process to compile PTX to a cubin. The driver's own
// compiler needs no toolkit. But when it returns code to be stored, it compiles that code as relocatable, which
// disables moving registers between warpgroups (setmaxnreg). May be called from several threads at once.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/assembled_object.hpp"

namespace kiln {

struct ptxas_tool {
  std::string executable;
  std::string version;  // "12.8.93"
};

// The folders of PATH, then the toolkit's default folder.
std::vector<std::filesystem::path> ptxas_folders();

// The first ptxas in `folders` whose release is not newer than `driver_version` ("12.8"), so that the driver can run
// its output. An executable that does not report a version is skipped.
std::optional<ptxas_tool> find_ptxas(std::string_view driver_version,
                                     const std::vector<std::filesystem::path>& folders = ptxas_folders());

// Compiles PTX for the architecture of its .target directive. An object that is not PTX is returned unchanged. Throws
// error{compile_failed} with ptxas' last line, error{timed_out}, error{io}.
std::vector<std::byte> assemble_ptx(const ptxas_tool& tool, std::span<const std::byte> object);

// By the tool, and where that fails by `driver`. The result names `tool_name` where the tool made it, `refused_name`
// where the tool refused the text, and nobody where the tool failed for another reason (a full disk, a time limit),
// since the tool may do better next time. `warn` is told why the driver had to do it.
assembled_object assemble_ptx_or(const ptxas_tool& tool, std::span<const std::byte> object,
                                 const std::string& tool_name, const std::string& refused_name,
                                 const std::function<std::vector<std::byte>(std::span<const std::byte>)>& driver,
                                 const std::function<void(const std::string&)>& warn);

}  // namespace kiln
