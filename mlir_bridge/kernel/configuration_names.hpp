// The names that generators and compilers read from a kernel_configuration. A name that is not among them does nothing
// for any kernel, so the command line refuses it. A test compares the list with the sources.
#pragma once

#include <span>
#include <string_view>

namespace kiln {

std::span<const std::string_view> configuration_names();

}  // namespace kiln
