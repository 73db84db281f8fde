// Measures how a session with kernels that serve many sizes handles sizes that it has not seen.
#pragma once

#include <string>

namespace kiln::bench {

//     bench_session --unseen FILE.kiln NAME=MIN:MAX[,NAME=MIN:MAX...] COUNT [CACHE_FOLDER [lazy]]
//
// Opens the file twice, without and with specialized kernels, and runs both with random data of COUNT random sizes.
// Prints one line per set of sizes: the number of kernels that the first session compiled, the milliseconds to create
// its instance, of its first run (including the creation) and of later runs, the same for the specialized session, and
// the speed relative to that session. Returns 1 if results differ.
int measure_unseen(int argc, char** argv, const std::string& device);

}  // namespace kiln::bench
