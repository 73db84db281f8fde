// A reply of a Redis server as a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

struct redis_value {
  enum class type { null, number, text, list, error };
  type kind = type::null;
  std::int64_t number = 0;
  std::string text;  // a string (any bytes), or the message of an error
  std::vector<redis_value> items;

  bool is_null() const { return kind == type::null; }
  // The value of a number, or of a text that begins with digits; 0 for everything else.
  std::int64_t as_number() const;
};

}  // namespace kiln
