// Which files a model in ONNX's format consists of besides its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

// The files beside the model that hold its external data, as the model names them, sorted. Throws error{missing_file}
// for one that is not there, error{invalid_model} for a name that leaves the model's folder, and what parsing throws.
std::vector<std::string> external_data_files(const std::filesystem::path& model);

}  // namespace kiln
