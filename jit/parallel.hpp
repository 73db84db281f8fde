// A bounded parallel loop for work whose pieces differ much in cost (kernels to compile): a free thread takes the next
// index. The threads live as long as the call; a piece takes milliseconds at least, so starting them costs nothing that
// counts.
#pragma once

#include <cstddef>
#include <functional>

namespace kiln {

// Calls body(0) ... body(count - 1), each once, on at most `threads` threads (0: as many as this process may use), the
// caller's among them. After an exception no further index is begun; the first exception is thrown again here, when all
// threads are done.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace kiln
