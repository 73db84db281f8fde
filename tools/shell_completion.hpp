// Completion scripts of `kiln` for shells, and its manual pages. Pure: text from a description of the commands.
#pragma once

#include <string>

#include "tools/command_description.hpp"

namespace kiln::tools {

std::string bash_completion(const command_description& top);
std::string zsh_completion(const command_description& top);
std::string fish_completion(const command_description& top);

// The page kiln.1 for the top, kiln-COMMAND.1 for a command right below it, with the commands below that one. In roff's
// man macros.
std::string man_page(const command_description& command, const std::string& version);

}  // namespace kiln::tools
