// The dimensions of a program that still lack a value, for messages that name all of them at once. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace kiln {

// The symbols of `p` without a value in `given`, in the order of their names.
std::vector<std::string> open_dimensions(const program& p, const dim_bindings& given);

// "dimension 'a' is open: give it a value", "dimensions 'a', 'b' and 'c' are open: give them values". `names` is not
// empty.
std::string are_open(std::span<const std::string> names);

// Throws error{usage} that names the open dimensions, if there are any. `remedy` continues the message.
void require_dimensions(const program& p, const dim_bindings& given, const std::string& remedy = {});

}  // namespace kiln
