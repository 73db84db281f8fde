// Counts what a session with kernels for all sizes compiles while somebody waits for an answer. There must be nothing.
#pragma once

#include <string>

namespace kiln::bench {

//     bench_session --compiles FILE.kiln LARGEST COUNT [CACHE_FOLDER [plans]]
//
// Opens the file without specialized kernels and asks for a plan of the smallest size of every dimension, the largest
// ones (of the declared range, but at most LARGEST), 0, 1 and 2 where these are in the range, of these in turn with
// random sizes of the others, and of COUNT sets of random sizes. Prints the kernels that were compiled and the plans
// that did not come from the template, by sizes. At the smallest sizes and where a tensor is empty, it also
// runs the model and compares the outputs with those of specialized kernels; with `plans` it does not. Returns 1 if a
// kernel was compiled after the first sizes, or an output differs.
int measure_compiles(int argc, char** argv, const std::string& device);

}  // namespace kiln::bench
