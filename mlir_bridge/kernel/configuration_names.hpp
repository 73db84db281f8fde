// The names that generators and compilers read from a kernel_configuration. No kernel reads any other name, so the
// command line refuses others. A test compares the list with the sources.
#pragma once

#include <span>
#include <string_view>

namespace kiln {

std::span<const std::string_view> configuration_names();

}  // namespace kiln
