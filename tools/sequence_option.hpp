// The option --sequence: the number of elements and their dims for inputs that are sequences or optionals. For commands
// that import models.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "aot/onnx/import.hpp"

namespace kiln::tools {

inline void add_sequence_option(CLI::App& app, std::vector<std::string>& texts) {
  app.add_option(
      "--sequence", texts,
      "NAME=[2,3][2,5] gives the elements of an input that is a sequence; NAME=none an optional without value");
}

inline void read_sequences(const std::vector<std::string>& texts, import_options& importing) {
  for (const std::string& text : texts) importing.sequences.insert(parse_sequence_spec(text));
}

}  // namespace kiln::tools
