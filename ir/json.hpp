// Parses untrusted JSON: manifests, tuning hints and records, recorded misses, farm jobs, lists of models. A small text
// must not be able to exhaust the stack, memory or time, so size, nesting, number of values and members per object are
// checked before the document is built. No other code of Kiln may call nlohmann's parser (enforced by test/house).
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "ir/error.hpp"

namespace kiln {

struct json_limits {
  std::size_t bytes = std::size_t{64} << 20;
  std::size_t depth = 32;  // nesting of arrays and objects
  std::size_t values = std::size_t{1} << 22;
  std::size_t members = 4096;  // per object; keys are compared one by one
};

// Throws error{corrupted} if the text is not JSON or exceeds a limit.
nlohmann::ordered_json parse_json(std::string_view text, const json_limits& limits = {});

// What an exception of nlohmann's says, without the library's own words: "it is not JSON from byte 12 on", or "type
// must be number, but is string" for a value of another type.
std::string problem_of(const nlohmann::json::exception& e);

// A whole number in the range of `Int`. Throws error{corrupted} for anything else; get<Int>() would convert 1e300.
template <class Int>
Int integer_of(const nlohmann::ordered_json& value) {
  if (value.is_number_unsigned()) {
    if (const auto number = value.get<std::uint64_t>(); std::in_range<Int>(number)) return static_cast<Int>(number);
  } else if (value.is_number_integer()) {
    if (const auto number = value.get<std::int64_t>(); std::in_range<Int>(number)) return static_cast<Int>(number);
  }
  throw error(error_kind::corrupted, "a number is no whole one, or out of range");
}

}  // namespace kiln
