#include "fuzz_target.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "ir/error.hpp"

namespace kiln::fuzzing {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::filesystem::path as_file(std::span<const std::byte> bytes) {
  static int descriptor = -1;
  if (descriptor >= 0) ::close(descriptor);
  descriptor = ::memfd_create("input", MFD_CLOEXEC);
  require(descriptor >= 0, "memfd_create");
  require(bytes.empty() || ::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
          "write to a file in memory");
  return "/proc/self/fd/" + std::to_string(descriptor);
}

std::vector<std::byte> aligned_copy(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace kiln::fuzzing

// 0: the input may join the corpus.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    kiln::fuzzing::read_input({reinterpret_cast<const std::byte*>(data), size});
  } catch (const kiln::error& e) {
    if (e.kind() != kiln::error_kind::internal) return 0;
    std::fprintf(stderr, "internal error: %s\n", e.what());
    std::abort();
  }
  return 0;
}
