// Input files of a farm job that are not sent but read by path from storage that all machines share. A worker reads
// only files below its shared roots, also after following symbolic links. It discloses nothing about files elsewhere,
// not even whether they exist.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "jit/remote/farm_job.hpp"

namespace kiln {

// Makes `to` a symbolic link to the file at `input.path`, after checking its size and hash. Throws error{io} for a file
// outside of `roots` (another worker may be able to read it), error{corrupted} if the file is not the one that was
// submitted.
void link_shared_file(const farm_input& input, const std::filesystem::path& to,
                      const std::vector<std::filesystem::path>& roots, const std::string& worker);

}  // namespace kiln
