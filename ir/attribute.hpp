// The values that an operation's fields can take, and the one list of (name, value) that every use of an operation's
// fields goes through: printing, comparison, hashing, the file's schema and the MLIR bridge.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/dim.hpp"
#include "ir/element_type.hpp"

namespace kiln {

using attribute = std::variant<bool, std::int64_t, double, std::string, element_type, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>, std::vector<dim>>;

// In the order of declaration, which is part of an operation's identity.
using attribute_list = std::vector<std::pair<std::string, attribute>>;

// "3", "[1, 1]", "f16", "max", "[batch, 12]"; doubles print so that they read back equal.
std::string str(const attribute& value);

}  // namespace kiln
