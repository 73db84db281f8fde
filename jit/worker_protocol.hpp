// The wire between a worker_pool and its processes. Both ends are the same executable on one machine: no compatibility
// is promised, numbers are the machine's own. Internal to worker_pool.cpp and worker_host.cpp.
//
// The host's standard input is a socket of control messages (SOCK_SEQPACKET), each answered by one, except
// `prepare`, which says that a `start` will follow soon. `start` carries two sockets: the new worker's
// requests and answers, and its standard output and error. On the first, each request is a header and its bytes;
// the worker answers with frames.
#pragma once

#include <cstdint>

namespace kiln::worker_protocol {

enum class control : std::uint32_t { prepare, start, stop };

struct control_request {
  control what = control::start;
  std::int32_t process = 0;  // stop: which worker
  std::int32_t nice = 0;     // start: priority of the worker
  std::uint32_t padding = 0;
  std::int64_t memory_bytes = 0;  // start: address space beyond what the host has; 0: no limit
};

struct control_answer {
  std::int32_t process = 0;  // start: the worker, or -errno
  std::int32_t status = 0;   // stop: how it ended, as waitpid says
};

struct request_header {
  std::uint64_t bytes = 0;
  std::uint64_t processor_seconds = 0;  // how much the worker may use for this request; 0: no limit
};

enum class frame : std::uint64_t {
  accepted,
  answer
};  // accepted: the untrusted input has been read and found sound; an answer follows

struct frame_header {
  frame kind = frame::answer;
  std::uint64_t bytes = 0;
};

}  // namespace kiln::worker_protocol
