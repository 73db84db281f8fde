// A process-wide request to stop, made by Ctrl-C or by an expired time limit. Long-running work polls it between units
// of work (an instruction, a loop iteration, a pass) and unwinds with an exception, so that files, devices and child
// processes are released. Only the command line makes the request (tools/process_limits.hpp); a library never does.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln {

enum class stop_reason : std::uint8_t { none, interrupted, time_limit };

namespace detail {
inline std::atomic<stop_reason> requested_stop{stop_reason::none};
[[noreturn]] void throw_stop(stop_reason why);
}  // namespace detail

// May be called from any thread. Only the first request is recorded.
inline void request_stop(stop_reason why) {
  stop_reason none = stop_reason::none;
  detail::requested_stop.compare_exchange_strong(none, why);
}
inline stop_reason requested_stop() { return detail::requested_stop.load(std::memory_order_relaxed); }

// Throws error{timed_out} once a stop has been requested; requested_stop() tells why. Costs one atomic load otherwise.
inline void check_stop() {
  if (const stop_reason why = requested_stop(); why != stop_reason::none) [[unlikely]]
    detail::throw_stop(why);
}

}  // namespace kiln
