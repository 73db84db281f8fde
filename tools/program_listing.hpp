// The `program` part of kernels.json: the native program as data, so that programs other than Kiln's runtime can run
// its kernels in order (as test/emulation does). docs/kernels_json.md describes the format. No side effects except the
// files of constants; any thread may call.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ir/program.hpp"

namespace kiln::tools {

// `kernels` maps payloads to indices in the document's list of kernels. `constants` is a folder: if given, every
// constant of the main module is written there as value_ID.npy. Throws error{io} if a file cannot be written,
// std::out_of_range for a kernel that is not in `kernels`.
nlohmann::ordered_json list_program(const program& native, const std::map<std::string, std::size_t>& kernels,
                                    const std::optional<std::filesystem::path>& constants);

}  // namespace kiln::tools
