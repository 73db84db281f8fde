// Events that a session reports while it works. One function takes all events: the command line makes bars and lines of
// them, a binding its own callbacks.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <variant>

#include "ir/program.hpp"
#include "jit/compare_cached.hpp"
#include "jit/tuning/tuner.hpp"
#include "runtime/plan.hpp"

namespace kiln::session_events {

// Kernels are compiled: `done` of the `total` that the cache lacked are ready. The first event, before the cache is
// asked, has zeros.
struct finalizing {
  std::size_t done = 0, total = 0;
};

// All kernels of an instance are there. The report says which of them the cache had.
struct finalized {
  const dim_bindings& sizes;
  const jit_report& report;
  double ms = 0;
};

// An entry of the cache was not what the compiler makes, and was replaced (session_options::verify_cache).
struct entry_replaced {
  const cache_mismatch& mismatch;
};

// Kernels, constants and packed weights are on the device. The plan's report counts the weights that were packed now
// (prepared_made) and those that were found packed (prepared_found).
struct loaded {
  const dim_bindings& sizes;
  const plan_report& report;
  double ms = 0;
};

// The tuner is done with one kernel, in the foreground (instance::tune).
struct tuned {
  const kernel_tuning& kernel;
  std::size_t done = 0, total = 0;
};

// From this run on, an instance runs with the kernels that tuning in the background has found so far.
struct kernels_swapped {
  const dim_bindings& sizes;
  std::size_t swaps = 0;  // of this instance, this one included
};

// Something is wrong that does not keep the model from running: a cache folder that cannot be used, a record that
// cannot be read. One line.
struct warning {
  const std::string& text;
};

// There were more instances than are kept; this one was the least recently used.
struct instance_dropped {
  const dim_bindings& sizes;
};

}  // namespace kiln::session_events

namespace kiln {

using session_event =
    std::variant<session_events::finalizing, session_events::finalized, session_events::entry_replaced,
                 session_events::loaded, session_events::tuned, session_events::kernels_swapped,
                 session_events::warning, session_events::instance_dropped>;

// Called while the work goes on: it should return soon. References in an event are valid during the call only.
// `finalizing` comes from compiling threads, one call at a time, and `warning` from any thread; the others come from
// the thread that called the session. It must not throw and must not call the session.
using session_observer = std::function<void(const session_event&)>;

}  // namespace kiln
