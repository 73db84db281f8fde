// The files of a language model: one file, or a folder as optimum and onnxruntime-genai write them. A `.kiln` file
// comes before the `.onnx` of the same name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace kiln::tools {

struct generation_files {
  std::filesystem::path decoder;
  std::filesystem::path first;    // decoder of the first step; empty: there is none
  std::filesystem::path encoder;  // empty: there is none
  // From config.json, generation_config.json or genai_config.json.
  std::vector<std::int64_t> stop_ids;
  std::optional<std::int64_t> context, decoder_start;
};

// Throws error{missing_file} if there is no decoder, and error{corrupted} for a configuration that is no JSON object.
generation_files find_generation_files(const std::filesystem::path& file_or_folder);

}  // namespace kiln::tools
