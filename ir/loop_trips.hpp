// The budget of a loop. A file of a few hundred bytes can ask for 2^62 trips, which never ends. A trip costs at least
// 25 ns on the host, so that a loop with an empty body reaches the budget within seconds. Loops whose bodies do more
// are ended by --time-limit. Pure; any thread.
#pragma once

#include <cstdint>

#include "ir/error.hpp"

namespace kiln {

inline constexpr std::int64_t max_loop_trips = std::int64_t{1} << 27;

// Throws error{unsupported} before the trip that is one too many; `done` trips were made.
inline void check_trips(std::int64_t done) {
  if (done >= max_loop_trips) throw error(error_kind::unsupported, "a loop of more than 134217728 trips");
}

}  // namespace kiln
