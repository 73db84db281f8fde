// A list of models with command-line options for each, for `--manifest LIST` of `kiln warm` and `kiln farm submit`. It
// consists either of lines
//
//   # comment
//   resnet50.kiln
//   "with space.kiln" --target gfx942 --dim batch=1,8
//
// or a JSON array of {"file": "resnet50.kiln", "options": ["--target", "gfx942"]}. Files are relative to the list's
// folder. Words with spaces are quoted with ".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::tools {

struct listed_model {
  std::string file;
  std::vector<std::string> options;
};

// Throws error{missing_file} if the list cannot be read, error{usage} with the number of a malformed line.
std::vector<listed_model> read_model_list(const std::filesystem::path& list);

// Splits text into words at spaces; a word in "..." may contain spaces. Throws error{usage} for an unclosed quote.
std::vector<std::string> split_words(std::string_view text);

}  // namespace kiln::tools
