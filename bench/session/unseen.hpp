// How a session with kernels that serve many sizes meets sizes that it has not seen.
#pragma once

namespace kiln::bench {

//     bench_session --unseen FILE.kiln NAME=MIN:MAX[,NAME=MIN:MAX...] COUNT [CACHE_FOLDER]
//
// Opens the file twice, with and without specialized kernels, and asks both for COUNT random sizes of random data. One
// line for each: kernels that the first one compiled, milliseconds to make its instance, those of its first answer
// (making included) and of later ones, the same of the specialized session, and its speed relative to that session.
// Returns 1 if results differ.
int measure_unseen(int argc, char** argv);

}  // namespace kiln::bench
