// RAII wrappers of a file descriptor and of a child process. Used by child_process.hpp and worker_pool.hpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int number) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() { reset(); }
  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  void reset();

 private:
  int number_ = -1;
};

// Two connected sockets. Sockets rather than pipes, because writing to a process that has ended then returns an error
// (MSG_NOSIGNAL) instead of raising SIGPIPE. Both ends are close-on-exec; `ours` is non-blocking. `type` is SOCK_STREAM
// or SOCK_SEQPACKET. Throws error{io}.
struct channel {
  descriptor ours, theirs;
};
channel make_channel(int type);

// A child process that leads its own process group. The destructor kills the group if the process still runs, and waits
// for the process.
class spawned_process {
 public:
  // arguments[0] is the executable's path. The three descriptors become its standard streams; it inherits no others.
  // Throws error{io}.
  spawned_process(const std::vector<std::string>& arguments, int input, int output, int errors);
  // Takes over a forked child that leads its own process group.
  explicit spawned_process(pid_t child) : id_(child) {}
  spawned_process(const spawned_process&) = delete;
  ~spawned_process();

  pid_t id() const { return id_; }

  // The status as returned by waitpid, or nothing while the process runs. `flags` are those of waitpid: 0 waits,
  // WNOHANG does not.
  std::optional<int> wait(int flags);

 private:
  pid_t id_ = -1;
  std::optional<int> status_;
};

// "ended by signal 11 (Segmentation fault)" or "ended with status 3", from a status of waitpid.
std::string describe_end(int status);

// The last line of `text` (a process's standard error), shortened; "" if there is none.
std::string last_line(std::string_view text);

}  // namespace kiln
