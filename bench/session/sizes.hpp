// Random sizes and data for measurements of sessions.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "ir/literal.hpp"
#include "ir/program.hpp"

namespace kiln::bench {

using size_ranges = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

// Parses "batch=1:16,seq=1:128". Empty if it is malformed.
size_ranges parse_ranges(std::string_view text);
// The dims that are not in `ranges` get their smallest values, but at least 1.
dim_bindings random_sizes(const program& p, const size_ranges& ranges, std::mt19937& engine);
// Floats are normally distributed. Integers and bools are 0 or 1, which are valid indices for every table of a model.
literal random_data(const shape& type);

}  // namespace kiln::bench
