// The processes of a worker_pool. The host is a process with one thread that prepares what all workers need (LLVM,
// loaded and initialized) and then forks one worker for each request of the pool, which costs a millisecond where a new
// process costs thirty. A worker answers requests, one after another. Workers end when the host ends, and the host ends
// when the pool's process does, however that happens.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "jit/spawned_process.hpp"

namespace kiln {

// Answers one request. It calls `accepted` as soon as everything untrusted in the request has been read and verified.
// It must not throw.
using worker_function =
    std::function<std::vector<std::byte>(std::span<const std::byte> request, const std::function<void()>& accepted)>;

// The host's main function, on standard input. `prepare` is called once, when the first message comes, and must not
// start threads. Returns the exit status.
int run_worker_host(const std::function<worker_function()>& prepare);

// A host that is a fork of this process instead of a new executable. The fork costs a millisecond; loading and
// relocating LLVM again costs forty.
struct forked_host {
  descriptor control;  // where the pool sends its messages
  pid_t process = -1;
};

// Call it while the process has one thread, before it opens files that the workers must not see. The host sleeps until
// a message comes, and ends with this process. Returns nothing where the system cannot fork; the pool starts an
// executable then.
std::optional<forked_host> fork_worker_host(const std::function<worker_function()>& prepare);

}  // namespace kiln
