// A list of models with words of the command line for each, as `--manifest LIST` names one for `kiln warm` and `kiln
// farm submit`. Either lines
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

// Throws error{missing_file} where the list cannot be read, error{usage} naming the line that makes no sense.
std::vector<listed_model> read_model_list(const std::filesystem::path& list);

// Words separated by spaces; "..." holds spaces. Throws error{usage} for a quote that is not closed.
std::vector<std::string> split_words(std::string_view text);

}  // namespace kiln::tools
