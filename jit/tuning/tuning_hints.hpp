// The section `tuning_hints` of a `.kiln` file: the tuning records of the machine that tuned the file. Pure functions;
// any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/tuning/tuning_record.hpp"

namespace kiln {

// Throws error{corrupted} if the text would be larger than parse_hints accepts.
std::string hints_text(const std::vector<tuning_record>& records);
// Throws error{corrupted, newer_version}.
std::vector<tuning_record> parse_hints(std::string_view text);

}  // namespace kiln
