// The `program` part of kernels.json: the native program as data, so that something other than Kiln's runtime can run
// its kernels in their order (test/emulation does). docs/kernels_json.md describes it. Pure but for the files of the
// constants; any thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ir/program.hpp"

namespace kiln::tools {

// `kernels`: payload → index in the kernels of the same document. With `constants`, every constant of the main module
// is written there as value_ID.npy. Throws error{io} where a file cannot be written, std::out_of_range for a kernel
// that is not in `kernels`.
nlohmann::ordered_json list_program(const program& native, const std::map<std::string, std::size_t>& kernels,
                                    const std::optional<std::filesystem::path>& constants);

}  // namespace kiln::tools
