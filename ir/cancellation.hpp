// A request to stop that concerns the whole process: Ctrl-C, or a time limit that has passed. Long work asks between
// two of its pieces (an instruction, a trip of a loop, a pass) and unwinds as it does from any error, so that files,
// devices and children are released. The command line makes the request (tools/process_limits.hpp); a library never
// does.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln {

enum class stop_reason : std::uint8_t { none, interrupted, time_limit };

namespace detail {
inline std::atomic<stop_reason> requested_stop{stop_reason::none};
[[noreturn]] void throw_stop(stop_reason why);
}  // namespace detail

// From any thread. The first request counts.
inline void request_stop(stop_reason why) {
  stop_reason none = stop_reason::none;
  detail::requested_stop.compare_exchange_strong(none, why);
}
inline stop_reason requested_stop() { return detail::requested_stop.load(std::memory_order_relaxed); }

// Throws error{timed_out} once a stop has been requested; requested_stop() says why. Costs one load where none has.
inline void check_stop() {
  if (const stop_reason why = requested_stop(); why != stop_reason::none) [[unlikely]]
    detail::throw_stop(why);
}

}  // namespace kiln
