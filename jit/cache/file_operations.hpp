// Reads, maps and atomically writes whole files through a file_system. Every result is checked and EINTR is retried. A
// failure is returned as an errno value with the name of the call that failed; nothing throws.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/cache/file_system.hpp"

namespace kiln {

struct file_failure {
  const char* call = nullptr;  // "open", "read", "write", ...; null: no failure
  int code = 0;                // errno
  bool foreign = false;        // the file violates file_owner; code is EPERM
  explicit operator bool() const { return call != nullptr; }
  std::string text() const;  // "write: No space left on device"
};

// Prefix of the names of temporary files.
inline constexpr std::string_view temporary_prefix = ".tmp-";

// Which owner a file must have. `this_user`: owned by this user or root, and not writable by others. The open
// descriptor is checked, not the path.
enum class file_owner { anybody, this_user };

// Reads at most `limit` bytes from the beginning of the file.
file_failure read_file(file_system& files, const std::filesystem::path& file, std::size_t limit,
                       std::vector<std::byte>& bytes, file_owner owner = file_owner::anybody);

struct mapping {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
file_failure map_file(file_system& files, const std::filesystem::path& file, mapping& mapped,
                      file_owner owner = file_owner::anybody);

// Like map_file, but copies the bytes into memory of this process, aligned to 4096.
file_failure copy_file(file_system& files, const std::filesystem::path& file, mapping& copied);

// synchronized: the file has its content also after a loss of power (fsync). unsynchronized: it may then be damaged;
// for files that are verified when they are read and can be made again.
enum class durability { synchronized, unsynchronized };

// Writes `head` followed by `tail` to folder/name atomically: to a temporary file in the same folder, which is
// synchronized if `lasting` says so, and renamed. The temporary file is removed on failure.
file_failure write_file(file_system& files, const std::filesystem::path& folder, const std::string& name,
                        std::span<const std::byte> head, std::span<const std::byte> tail,
                        durability lasting = durability::synchronized);

}  // namespace kiln
