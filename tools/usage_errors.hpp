// Explains why CLI11 refuses a command line: one line that names the word and, where one is near, the spelling that was
// probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace kiln::tools {

// `app` has just refused `words` (without the program's name) with `problem`.
std::string describe_usage_error(const CLI::App& app, std::span<const char* const> words,
                                 const CLI::ParseError& problem);

}  // namespace kiln::tools
