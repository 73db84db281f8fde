// --shape INPUT:1x3x224x224 of the commands that take a model. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "ir/bind_shapes.hpp"

namespace kiln::tools {

// Throws error{usage} if the program has no input of this name; the message suggests the nearest one.
value find_input(const program& p, const std::string& name);
// The shapes that the texts give to inputs. Throws error{usage}.
std::vector<given_shape> given_shapes(const program& p, const std::vector<std::string>& texts);

}  // namespace kiln::tools
