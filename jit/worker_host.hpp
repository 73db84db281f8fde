// The processes of a worker_pool. The host is a process with one thread that prepares what all workers need (LLVM,
// loaded and initialized) and then forks one worker for each request of the pool, which costs a millisecond where a new
// process costs thirty. A worker answers requests, one after another. Workers end when the host ends, and the host ends
// when the pool's process does, however that happens.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kiln {

// Answers one request. It calls `accepted` as soon as everything untrusted in the request has been read and verified.
// It must not throw.
using worker_function =
    std::function<std::vector<std::byte>(std::span<const std::byte> request, const std::function<void()>& accepted)>;

// The host's main function, on standard input; `prepare` is called once and must not start threads. Returns the exit
// status.
int run_worker_host(const std::function<worker_function()>& prepare);

}  // namespace kiln
