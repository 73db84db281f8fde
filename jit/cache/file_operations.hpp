// Whole-file reading, mapping and atomic writing over a file_system, with every result checked and interruptions
// retried. A failure is an errno value and the call that failed; nothing throws.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/cache/file_system.hpp"

namespace kiln {

struct file_failure {
  const char* call = nullptr;  // "open", "read", "write", ...; null: none
  int code = 0;                // errno
  bool foreign = false;        // the file is not what file_owner asks for; code is EPERM
  explicit operator bool() const { return call != nullptr; }
  std::string text() const;  // "write: No space left on device"
};

// Names of files that are being written begin with this.
inline constexpr std::string_view temporary_prefix = ".tmp-";

// Whose a file may be: anybody's, or this user's and root's, with no right for others to write it. The open file is
// asked, not its name.
enum class file_owner { anybody, this_user };

// At most `limit` bytes from the beginning.
file_failure read_file(file_system& files, const std::filesystem::path& file, std::size_t limit,
                       std::vector<std::byte>& bytes, file_owner owner = file_owner::anybody);

struct mapping {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
file_failure map_file(file_system& files, const std::filesystem::path& file, mapping& mapped,
                      file_owner owner = file_owner::anybody);

// The same bytes in memory of this process, aligned to 4096.
file_failure copy_file(file_system& files, const std::filesystem::path& file, mapping& copied);

// folder/name becomes `head` followed by `tail`: through a temporary in the same folder, synchronized, then renamed.
// The temporary is removed where anything fails.
file_failure write_file(file_system& files, const std::filesystem::path& folder, const std::string& name,
                        std::span<const std::byte> head, std::span<const std::byte> tail);

}  // namespace kiln
