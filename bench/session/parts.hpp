// Parts of what a set of sizes costs that a session has not seen. For bench_session.
#pragma once

#include <string>

namespace kiln::bench {

// FILE.kiln NAME=MIN:MAX[,...] COUNT [CACHE_FOLDER]: for COUNT random sets of sizes in one session, with kernels that
// serve all sizes, prints the median, the 99 % quantile and the maximum of microseconds for each part: the plan, memory
// of inputs and outputs, a context, its first three runs with graphs and with launches one by one, and the end of
// each. Returns the exit code.
int measure_parts(int argc, char** argv, const std::string& device);

}  // namespace kiln::bench
