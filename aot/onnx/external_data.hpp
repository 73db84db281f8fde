// Lists the external data files of an ONNX model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kiln {

// Returns the files that hold the model's external data, sorted, with the paths written in the model. Throws
// error{missing_file} for a file that does not exist, error{invalid_model} for a path outside the model's folder, and
// the errors of parsing.
std::vector<std::string> external_data_files(const std::filesystem::path& model);

}  // namespace kiln
