// JSON from outside: manifests, tuning hints and records, recorded misses, farm jobs, lists of models. A text of a few
// bytes must not cost its reader the stack, gigabytes or hours, so size, nesting, number of values and members of one
// object are bounded before anything is built. Nothing else in Kiln calls nlohmann's parser (test/house).
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

namespace kiln {

struct json_limits {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t depth = 32;  // of arrays and objects in each other
  std::size_t values = std::size_t{1} << 22;
  std::size_t members = 4096;  // of one object: their keys are compared one by one
};

// Throws error{corrupted} for text that is no JSON or exceeds a limit.
nlohmann::ordered_json parse_json(std::string_view text, const json_limits& limits = {});

}  // namespace kiln
