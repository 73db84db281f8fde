// A profile of the launches of a model, for `kiln perf --per-kernel`, `--html` and `--trace`: the time of each, the
// bytes that it reads and writes, and how much of the arena holds values meanwhile.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/io_buffers.hpp"

namespace kiln::tools {

// Milliseconds of each instruction of the plan, from `runs` runs in which every step is timed on its own, without a
// graph. One object for each instruction with launches, in the order of the plan:
// {symbol, payload, origin, ms, launches, bytes, live_bytes}. `bytes` is the size of the tensors that it reads and
// writes, `live_bytes` that of the arena's values which are still needed when it runs.
nlohmann::ordered_json profile_launches(const executable& exe, const io_buffers& buffers, int runs);

}  // namespace kiln::tools
