// Better kernels for an instance, in the foreground or while it runs. What is found is kept in the session's records
// and cache.
#pragma once

#include <memory>
#include <vector>

#include "jit/tuning/tiered_model.hpp"
#include "jit/tuning/tuner.hpp"
#include "session/instance.hpp"

namespace kiln {

// The device to time on: a GPU is the session's own, the host a second one, whose threads a candidate that never ends
// may keep.
std::shared_ptr<device> timing_device(const session_resources& with);

// Tunes in this thread, with all processors: after a run, when nothing else is to be done. `inputs` in the order of the
// plan's.
std::vector<kernel_tuning> tune_now(const session_resources& with, const instance& of, std::span<const literal> inputs,
                                    const tuner_options& options, double budget_ms);

// A model that runs as the instance does and, once started, tunes in the background with the session's effort and
// budget. It refers to the instance.
std::unique_ptr<tiered_model> tune_in_background(const session_resources& with, const instance& of,
                                                 std::vector<literal> inputs);

}  // namespace kiln
