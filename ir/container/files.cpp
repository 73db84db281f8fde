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
  if (descriptor < 0)
    throw error(error_kind::missing_file, file.string() + ": cannot be opened: " + std::strerror(errno));
  struct closer {
    int descriptor;
    ~closer() { ::close(descriptor); }
  } close_it{descriptor};
  struct stat status{};
  if (::fstat(descriptor, &status) != 0)
    throw error(error_kind::io, file.string() + ": cannot be examined: " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw error(error_kind::missing_file, file.string() + ": is not a regular file");
  auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const mapped_file>(new mapped_file({}));
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (at == MAP_FAILED) throw error(error_kind::io, file.string() + ": cannot be mapped: " + std::strerror(errno));
  ::madvise(at, size, MADV_WILLNEED);  // only a hint; failure does not matter
  return std::shared_ptr<const mapped_file>(new mapped_file({static_cast<const std::byte*>(at), size}));
}

mapped_file::mapped_file(std::span<const std::byte> bytes) : bytes_(bytes) {
  constexpr std::size_t large = std::size_t{1} << 30;
  if (bytes.size() >= large) large_.emplace(bytes);
}

mapped_file::~mapped_file() {
  large_.reset();
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

namespace {

std::filesystem::path folder_of(const std::filesystem::path& target) {
  return target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
}

// Opens a file without a name, so that nothing is left if the process is killed. Returns -1 if the file system does not
// support it or if the file could not be given a name later.
int open_nameless(const std::filesystem::path& folder) {
  if (::access("/proc/self/fd", X_OK) != 0) return -1;
  return ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
}

// Tries names beside the target until `make` creates a file. `make` returns whether it did; otherwise errno tells why.
template <class Make>
bool with_temporary_name(const std::filesystem::path& target, std::filesystem::path& name,
                         std::optional<temporary_file>& registered, Make make) {
  std::random_device random;
  for (int attempt = 0; attempt < 16; ++attempt) {
    name = target;
    name += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(random());
    if (make()) {
      registered.emplace(name);
      return true;
    }
    if (errno != EEXIST && errno != EINTR) break;
  }
  name.clear();
  return false;
}

}  // namespace

output_file::output_file(std::filesystem::path target) : target_(std::move(target)) {
  struct stat there{};
  if (::stat(target_.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    throw error(error_kind::io, target_.string() + ": is not a regular file");  // a rename would replace a device node
  descriptor_ = open_nameless(folder_of(target_));
  if (descriptor_ >= 0) return;
  auto create = [&] {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return descriptor_ >= 0;
  };
  if (!with_temporary_name(target_, temporary_, registered_, create)) fail("cannot be created", errno);
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
  if (temporary_.empty()) {
    const std::string nameless = "/proc/self/fd/" + std::to_string(descriptor_);
    if (!with_temporary_name(target_, temporary_, registered_, [&] {
          return ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0;
        }))
      fail("cannot be renamed to its final name", errno);
  }
  int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 && errno != EINTR) fail("cannot be written", errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be renamed to its final name", errno);
  temporary_.clear();
  registered_.reset();
  // Flush the directory too, so that the name survives a power failure. Some network file systems cannot flush a
  // folder; ignore that, because the file itself is complete.
  if (int at = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); at >= 0) {
    ::fsync(at);
    ::close(at);
  }
}

}  // namespace kiln::container
