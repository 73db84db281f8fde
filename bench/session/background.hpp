// Measures runs of a size for which exact kernels are made in the background.
#pragma once

#include <string>

namespace kiln::bench {

//     bench_session --background FILE.kiln NAME=FIRST:HOT[,NAME=FIRST:HOT...] SECONDS [CACHE_FOLDER]
//
// Opens the file with lazy specialization and runs the first sizes until the kernels for all sizes are there. Then runs
// the hot sizes without a pause for that long. Prints how long it took from the first run until the exact kernels were
// used, and the milliseconds of the runs before they were asked for, meanwhile and afterwards. Returns 1 if none came.
int measure_background(int argc, char** argv, const std::string& device);

}  // namespace kiln::bench
