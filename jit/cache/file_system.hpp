// The file system calls that the cache uses, as an interface, so that tests can make every call fail. Functions return
// 0 or an errno value and never throw. Outputs are set only on success. Any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kiln {

struct file_status {
  bool is_folder = false, is_link = false, is_regular = false;
  std::uint32_t owner = 0;
  std::uint32_t mode = 0;  // permission bits
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  // nanoseconds since 1970
  std::uint64_t inode = 0;
};

class file_system {
 public:
  using path = std::filesystem::path;
  virtual ~file_system() = default;

  virtual int open_to_read(const path& file, int& descriptor) = 0;
  virtual int create(const path& file, int& descriptor) = 0;        // mode 0600; EEXIST if the file exists
  virtual int open_to_lock(const path& file, int& descriptor) = 0;  // creates a missing file with mode 0600
  // Takes an exclusive lock until the descriptor is closed. Does not wait: EWOULDBLOCK if another process holds it.
  virtual int lock(int descriptor) = 0;
  virtual int read(int descriptor, std::span<std::byte> into, std::size_t& done) = 0;  // may be short; 0 at the end
  virtual int write(int descriptor, std::span<const std::byte> bytes, std::size_t& done) = 0;  // may be short
  virtual int synchronize(int descriptor) = 0;
  virtual int close(int descriptor) = 0;  // the descriptor is closed even if this fails
  virtual int map(int descriptor, std::size_t bytes, const std::byte*& at) = 0;
  virtual void unmap(const std::byte* at, std::size_t bytes) = 0;
  virtual int status(int descriptor, file_status& out) = 0;
  virtual int status(const path& file, bool follow, file_status& out) = 0;
  virtual int read_link(const path& link, path& target) = 0;
  virtual int rename(const path& from, const path& to) = 0;
  virtual int remove(const path& file) = 0;
  virtual int list(const path& folder, std::vector<std::string>& names) = 0;
  virtual int make_folder(const path& folder) = 0;  // mode 0700; parents must exist
  virtual int touch(const path& file, std::int64_t modified) = 0;
  virtual std::int64_t now() = 0;  // nanoseconds since 1970
  virtual std::uint32_t user() = 0;
};

// The real file system.
file_system& posix_file_system();

}  // namespace kiln
