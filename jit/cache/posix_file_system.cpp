#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "ir/trust/safe_path.hpp"
#include "jit/cache/file_system.hpp"

namespace kiln {
namespace {

constexpr std::int64_t second = 1'000'000'000;

int result_of(int code) { return code < 0 ? errno : 0; }

file_status describe(const struct stat& s) {
  return {S_ISDIR(s.st_mode),
          S_ISLNK(s.st_mode),
          S_ISREG(s.st_mode),
          s.st_uid,
          s.st_mode & 07777u,
          static_cast<std::uint64_t>(s.st_size),
          static_cast<std::int64_t>(s.st_mtim.tv_sec) * second + s.st_mtim.tv_nsec,
          s.st_ino};
}

class posix final : public file_system {
 public:
  int open_to_read(const path& file, int& descriptor) override {
    int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (opened < 0) return errno;
    return descriptor = opened, 0;
  }
  int create(const path& file, int& descriptor) override {
    int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (opened < 0) return errno;
    return descriptor = opened, 0;
  }
  int open_to_lock(const path& file, int& descriptor) override {
    int opened = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (opened < 0) return errno;
    return descriptor = opened, 0;
  }
  int lock(int descriptor) override { return result_of(::flock(descriptor, LOCK_EX | LOCK_NB)); }
  int read(int descriptor, std::span<std::byte> into, std::size_t& done) override {
    ssize_t count = ::read(descriptor, into.data(), std::min<std::size_t>(into.size(), std::size_t{1} << 30));
    if (count < 0) return errno;
    return done = static_cast<std::size_t>(count), 0;
  }
  int write(int descriptor, std::span<const std::byte> bytes, std::size_t& done) override {
    ssize_t count = ::write(descriptor, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (count < 0) return errno;
    return done = static_cast<std::size_t>(count), 0;
  }
  int synchronize(int descriptor) override { return result_of(::fsync(descriptor)); }
  int close(int descriptor) override { return result_of(::close(descriptor)); }
  int map(int descriptor, std::size_t bytes, const std::byte*& at) override {
    void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) return errno;
    return at = static_cast<const std::byte*>(mapped), 0;
  }
  void unmap(const std::byte* at, std::size_t bytes) override { ::munmap(const_cast<std::byte*>(at), bytes); }
  int status(int descriptor, file_status& out) override {
    struct stat s{};
    if (::fstat(descriptor, &s) != 0) return errno;
    return out = describe(s), 0;
  }
  int status(const path& file, bool follow, file_status& out) override {
    struct stat s{};
    if ((follow ? ::stat(file.c_str(), &s) : ::lstat(file.c_str(), &s)) != 0) return errno;
    return out = describe(s), 0;
  }
  int read_link(const path& link, path& target) override { return posix_path_reader().read_link(link, target); }
  int rename(const path& from, const path& to) override { return result_of(::rename(from.c_str(), to.c_str())); }
  int remove(const path& file) override { return result_of(::unlink(file.c_str())); }
  int list(const path& folder, std::vector<std::string>& names) override {
    DIR* opened = ::opendir(folder.c_str());
    if (!opened) return errno;
    std::vector<std::string> found;
    errno = 0;
    while (const dirent* entry = ::readdir(opened)) found.emplace_back(entry->d_name);
    int code = errno;
    ::closedir(opened);
    if (code == 0) names = std::move(found);
    return code;
  }
  int make_folder(const path& folder) override { return result_of(::mkdir(folder.c_str(), 0700)); }
  int touch(const path& file, std::int64_t modified) override {
    timespec times[2];
    times[0] = times[1] = {static_cast<time_t>(modified / second), static_cast<long>(modified % second)};
    return result_of(::utimensat(AT_FDCWD, file.c_str(), times, AT_SYMLINK_NOFOLLOW));
  }
  std::int64_t now() override {
    timespec t{};
    ::clock_gettime(CLOCK_REALTIME, &t);
    return static_cast<std::int64_t>(t.tv_sec) * second + t.tv_nsec;
  }
  std::uint32_t user() override { return ::geteuid(); }
};

}  // namespace

file_system& posix_file_system() {
  static posix files;
  return files;
}

}  // namespace kiln
