#include "ir/read_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ir/error.hpp"

namespace kiln {
namespace {

struct descriptor {
  int number;
  ~descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void fail(const std::filesystem::path& file, const char* what, int code) {
  throw error(error_kind::missing_file, file.string() + ": cannot be " + what + ": " + std::strerror(code));
}

bool is_pipe(int file) {
  struct stat status{};
  return ::fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
}

// Waits until there is something to read, or the end. Returns false if there is neither after so many milliseconds; -1
// waits as long as it takes.
bool wait_for(int file, int ms) {
  struct pollfd wanted{file, POLLIN, 0};
  int ready = 0;
  do ready = ::poll(&wanted, 1, ms);
  while (ready < 0 && errno == EINTR);
  return ready != 0;
}

}  // namespace

std::string read_file(const std::filesystem::path& file, std::size_t limit) {
  constexpr std::size_t piece = std::size_t{64} << 10;
  constexpr int writer_ms = 5000;
  // O_NONBLOCK: opening a named pipe must not wait for a writer. Reading waits as long as there is one.
  const descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (in.number < 0) fail(file, "opened", errno);
  const bool silent = is_pipe(in.number) && !wait_for(in.number, writer_ms);
  std::string bytes;
  for (;;) {
    const std::size_t had = bytes.size();
    bytes.resize(had + std::min(piece, limit - had + 1));  // one byte more tells that the file is too large
    const ssize_t got = ::read(in.number, bytes.data() + had, bytes.size() - had);
    if (got < 0 && errno == EAGAIN) wait_for(in.number, -1);
    else if (got < 0 && errno != EINTR) fail(file, "read", errno);
    bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 && silent && bytes.empty())
      throw error(error_kind::missing_file, file.string() + ": is a pipe, and nobody writes to it");
    if (got == 0) return bytes;
    if (bytes.size() > limit)
      throw error(error_kind::unsupported,
                  file.string() + ": is larger than " + std::to_string(limit) + " bytes, which is the limit");
  }
}

}  // namespace kiln
