// Files that a farm's job names by a path instead of sending them: they lie on storage that all machines see. A worker
// reads them below its shared roots only, whatever links lead there, and says nothing about files elsewhere, not even
// whether they exist.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "jit/remote/farm_job.hpp"

namespace kiln {

// Makes `to` a link to the file that `input.path` names, once its bytes are those of `input.hash`. Throws error{io} for
// a file that this worker does not read (another one may), error{corrupted} for another file than the one that was
// submitted.
void link_shared_file(const farm_input& input, const std::filesystem::path& to,
                      const std::vector<std::filesystem::path>& roots, const std::string& worker);

}  // namespace kiln
