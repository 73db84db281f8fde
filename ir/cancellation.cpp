#include "ir/cancellation.hpp"

#include "ir/error.hpp"

namespace kiln::detail {

void throw_stop(stop_reason why) {
  throw error(error_kind::timed_out,
              why == stop_reason::interrupted ? "stopped by a signal" : "the time limit has passed");
}

}  // namespace kiln::detail
