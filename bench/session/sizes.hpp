// Random sizes and data for measurements of sessions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "ir/literal.hpp"
#include "ir/program.hpp"
#include "session/session.hpp"

namespace kiln::bench {

using size_ranges = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

// What a measurement over random sizes is told: `--WAY FILE SIZES COUNT [CACHE]`.
struct measurement {
  std::string file;
  size_ranges ranges;
  int count = 0;
  session_options options = {};  // without a cache unless a folder is named; no specialized kernels
};

// Returns nullopt if the arguments are malformed.
std::optional<measurement> parse_measurement(int argc, char** argv, const std::string& device);
// Parses "batch=1:16,seq=1:128". Empty if it is malformed.
size_ranges parse_ranges(std::string_view text);
// The dims that are not in `ranges` get their smallest values, but at least 1.
dim_bindings random_sizes(const program& p, const size_ranges& ranges, std::mt19937& engine);
std::string str(const dim_bindings& sizes);  // "batch=1,seq=7"
// Floats are normally distributed. Integers and bools are 0 or 1, which are valid indices for every table of a model.
literal random_data(const shape& type);

}  // namespace kiln::bench
