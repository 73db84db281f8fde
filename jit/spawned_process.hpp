// A descriptor with an owner, and a child process with one. What child_process.hpp and worker_pool.hpp are made of.
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

// Two connected sockets. Sockets, not pipes: writing to a process that has ended is then an error code (MSG_NOSIGNAL)
// instead of a signal to this process. Neither end survives exec; ours does not block. `type` is SOCK_STREAM or
// SOCK_SEQPACKET. Throws error{io}.
struct channel {
  descriptor ours, theirs;
};
channel make_channel(int type);

// A started process in a group of its own. The destructor kills the group, if the process still runs, and waits for the
// process.
class spawned_process {
 public:
  // arguments[0] is the executable's path; the descriptors become its standard streams and it inherits no other. Throws
  // error{io}.
  spawned_process(const std::vector<std::string>& arguments, int input, int output, int errors);
  // A child that was forked, and leads a group of its own.
  explicit spawned_process(pid_t child) : id_(child) {}
  spawned_process(const spawned_process&) = delete;
  ~spawned_process();

  pid_t id() const { return id_; }

  // The status as waitpid gives it, or nothing while the process runs. `flags`: 0 waits.
  std::optional<int> wait(int flags);

 private:
  pid_t id_ = -1;
  std::optional<int> status_;
};

// "ended by signal 11 (Segmentation fault)" or "ended with status 3", from a status of waitpid.
std::string describe_end(int status);

// The last line of what a process wrote to standard error, shortened, or "".
std::string last_line(std::string_view text);

}  // namespace kiln
