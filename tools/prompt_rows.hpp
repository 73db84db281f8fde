// Prompts and masks from .npy files, as rows of ids.
#pragma once

#include <string>
#include <vector>

#include "generation/decoder.hpp"

namespace kiln::tools {

// Reads integers [ids] or [prompts, ids] of each file. With a mask of the same shape, ids where it is 0 are padding.
// Throws error{usage} for other tensors, and for a mask that does not fit or has padding between ids.
id_rows read_prompts(const std::vector<std::string>& files, const std::string& mask);

}  // namespace kiln::tools
