// The values that an operation's fields can hold, and the list of (name, value) pairs that describes an operation.
// Printing, comparison, hashing, the file format and the MLIR bridge all use this list.
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

// Fields in the order of their declaration. The order is part of an operation's identity.
using attribute_list = std::vector<std::pair<std::string, attribute>>;

// For example "3", "[1, 1]", "f16", "max", "[batch, 12]". A printed double parses back to the same value.
std::string str(const attribute& value);

}  // namespace kiln
