// A cache in one file: a tar archive compressed with zstd (`.tar.zst`), by libarchive, that `tar --zstd -xf` unpacks
// into a folder which is a layer. Members are in the order in which they are written, with no owner and no time: the
// same members make the same bytes. Throws error{io} where it cannot be written, error{missing_file, truncated,
// corrupted} where it cannot be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kiln {

// Whether `file` is written and read as an archive rather than a folder: by its name, `.tar.zst` or `.tzst`.
bool is_archive_name(const std::filesystem::path& file);

// Writes a temporary of its own beside the file (container::output_file), which appears whole with close(), or not at
// all.
class archive_writer {
 public:
  explicit archive_writer(const std::filesystem::path& file);
  ~archive_writer();
  archive_writer(const archive_writer&) = delete;
  archive_writer& operator=(const archive_writer&) = delete;
  void add(const std::string& name, std::span<const std::byte> bytes);
  void close();

 private:
  [[noreturn]] void failed() const;
  struct handle;
  std::unique_ptr<handle> handle_;
  std::filesystem::path file_;
};

// A larger member is neither written nor read, and an archive that is far larger than its compressed bytes is not read
// to its end.
inline constexpr std::uint64_t max_member_bytes = std::uint64_t{1} << 30;

struct archive_member {
  std::string name;
  std::uint64_t bytes = 0;
};

// Calls `take` for every regular file in the archive, with a function that reads its bytes and may be left uncalled.
// Members are not trusted: a name may be anything, and a size is what the archive claims.
void read_archive(
    const std::filesystem::path& file,
    const std::function<void(const archive_member&, const std::function<std::vector<std::byte>()>&)>& take);

}  // namespace kiln
