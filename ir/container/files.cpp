#include "ir/container/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "ir/error.hpp"

namespace kiln::container {

std::shared_ptr<const mapped_file> mapped_file::open(const std::filesystem::path& file) {
  int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw error(error_kind::missing_file, file.string() + ": cannot be opened: " + std::strerror(errno));
  struct closer {
    int descriptor;
    ~closer() { ::close(descriptor); }
  } close_it{descriptor};
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw error(error_kind::io, file.string() + ": cannot be examined: " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw error(error_kind::missing_file, file.string() + ": is not a regular file");
  auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const mapped_file>(new mapped_file({}));
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (at == MAP_FAILED) throw error(error_kind::io, file.string() + ": cannot be mapped: " + std::strerror(errno));
  ::madvise(at, size, MADV_WILLNEED);  // a hint: whether it is taken does not matter
  return std::shared_ptr<const mapped_file>(new mapped_file({static_cast<const std::byte*>(at), size}));
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

output_file::output_file(std::filesystem::path target) : target_(std::move(target)) {
  std::random_device random;
  for (int attempt = 0; attempt < 16 && descriptor_ < 0; ++attempt) {
    temporary_ = target_;
    temporary_ += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(random());
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST && errno != EINTR) fail("cannot be created", errno);
  }
  if (descriptor_ < 0) fail("cannot be created", EEXIST);
}

output_file::~output_file() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void output_file::fail(const char* what, int code) const {
  throw error(error_kind::io, target_.string() + ": " + what + ": " + std::strerror(code));
}

void output_file::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t done = ::write(descriptor_, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail("cannot be written", done == 0 ? ENOSPC : errno);
    size_ += static_cast<std::uint64_t>(done);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void output_file::pad_to(std::uint64_t offset) {
  constexpr std::array<std::byte, 4096> zeros{};
  while (size_ < offset) write(std::span(zeros).first(std::min<std::uint64_t>(offset - size_, zeros.size())));
}

void output_file::commit() {
  if (::fsync(descriptor_) != 0) fail("cannot be written", errno);
  int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 && errno != EINTR) fail("cannot be written", errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be put in place", errno);
  temporary_.clear();
  // The name itself must survive a power cut too. A folder that cannot be synchronized (some network file systems) is no
  // reason to fail: the file is there and whole.
  auto folder = target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  if (int at = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); at >= 0) {
    ::fsync(at);
    ::close(at);
  }
}

}  // namespace kiln::container
