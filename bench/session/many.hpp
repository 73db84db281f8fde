// Measures what new sets of sizes cost a session that has kernels for all sizes.
#pragma once

#include <string>

namespace kiln::bench {

//     bench_session --many FILE.kiln NAME=MIN:MAX[,NAME=MIN:MAX...] COUNT [CACHE_FOLDER]
//
// Opens the file without specialized kernels, runs it with random data of COUNT random sizes, each twice, and prints
// medians, 99th percentiles and maxima: of the microseconds to plan (also of new sizes without a run), of the first run
// beyond the second one, and of asking for the same sizes again, and of the first answer relative to the second run.
// Also prints the bytes of the largest arena, and the resident memory after a tenth of the sizes and at the end.
// Returns 1 if a kernel was compiled after the first sizes.
int measure_many(int argc, char** argv, const std::string& device);

}  // namespace kiln::bench
