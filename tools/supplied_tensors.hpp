// Tensors that a folder supplies: NAME.npy, or ONNX's own test data (input_3.pb, output_0.pb).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/literal.hpp"
#include "ir/module.hpp"

namespace kiln::tools {

// The tensor NAME.npy or ROLE_INDEX.pb; nullopt if the folder has neither. Throws what read_npy and read_onnx_tensor
// throw.
std::optional<literal> find_supplied(const std::string& folder, const std::string& name, const char* role,
                                     std::size_t index);

// The inputs of `m` that `given` lacks. Throws error{missing_file} for the first that the folder does not have, because
// supplied and random inputs together would mean nothing.
std::map<std::string, literal> read_inputs_of_folder(const module& m, const std::string& folder,
                                                     const std::map<std::string, literal>& given);

}  // namespace kiln::tools
