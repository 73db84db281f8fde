// A bounded parallel loop for iterations of very different cost (kernels to compile): a free thread takes the next
// index. Threads are started for each call. Iterations take milliseconds or more, so that cost is negligible.
#pragma once

#include <cstddef>
#include <functional>

namespace kiln {

// Calls body(0) ... body(count - 1), each once, on at most `threads` threads including the caller's (0: as many as this
// process may use). After an exception no further iteration is started; the first exception is rethrown when all
// threads are done.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace kiln
