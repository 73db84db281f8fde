// The commands and options of `kiln` as plain data, read from CLI11's tables. Completions of shells and manual pages
// are made from it, so that they cannot differ from what the program accepts.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kiln::tools {

struct option_description {
  std::vector<std::string> names;    // with their dashes, long ones first; a positional has one name without dashes
  std::string value;                 // what it takes, e.g. TEXT; empty for a flag
  std::vector<std::string> choices;  // the only values that it takes; empty if there are others
  std::string text;
  bool repeated = false, required = false;
};

struct command_description {
  std::vector<std::string> path;  // {"kiln", "cache", "stats"}
  std::string summary, footer;
  std::vector<option_description> options, positionals;
  std::vector<command_description> commands;
  // The words of the path with `separator` between them.
  std::string joined(char separator) const;
};

// Everything below `app` that its --help shows: options and commands in the empty group are left out.
command_description describe(const CLI::App& app);

// `command` and everything below it, from the top.
std::vector<const command_description*> all_commands(const command_description& command);

}  // namespace kiln::tools
