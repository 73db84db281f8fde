#include "ir/read_file.hpp"

#include <fcntl.h>
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

}  // namespace

std::string read_file(const std::filesystem::path& file, std::size_t limit) {
  constexpr std::size_t piece = std::size_t{64} << 10;
  const descriptor in{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (in.number < 0) fail(file, "opened", errno);
  std::string bytes;
  for (;;) {
    const std::size_t had = bytes.size();
    bytes.resize(had + std::min(piece, limit - had + 1));  // one byte more tells that the file is too large
    const ssize_t got = ::read(in.number, bytes.data() + had, bytes.size() - had);
    if (got < 0 && errno != EINTR) fail(file, "read", errno);
    bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return bytes;
    if (bytes.size() > limit)
      throw error(error_kind::unsupported,
                  file.string() + ": is larger than " + std::to_string(limit) + " bytes, which is the limit");
  }
}

}  // namespace kiln
