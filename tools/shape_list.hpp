// `kiln run --shape-list FILE`: sets of sizes at which a model runs, one after another, in one session. A file has a
// line for each set, with the words that --dim and --shape take:
//
//   # comment
//   batch=1 seq=7
//   images:1x3x224x224
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/opened_model.hpp"

namespace kiln::tools {

struct shape_set {
  std::size_t line = 0;  // in the file, from 1
  std::string text;
  std::vector<std::string> dims, shapes;
};

// Throws error{missing_file} if the file cannot be read, error{usage} if it has no sets or a quote is not closed.
std::vector<shape_set> read_shape_list(const std::filesystem::path& file);

// Runs the model once at each set, whose words are added to those of `options`. With an output folder, set N's outputs
// are written to its folder N, from 0. Returns {..., sets: [{sizes, finalize_ms, compiled, run_ms, outputs}]}: what
// opened_model::describe() tells, without the times of one set. Errors name the line.
nlohmann::ordered_json run_shape_list(const model_options& options, const std::vector<shape_set>& sets,
                                      const std::string& output_dir, const output_options& output);

// Prints that object as text.
void print_shape_list(const nlohmann::ordered_json& document);

}  // namespace kiln::tools
