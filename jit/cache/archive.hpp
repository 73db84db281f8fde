// A cache in one file: a tar archive compressed with zstd (`.tar.zst`), written with libarchive. `tar --zstd -xf`
// unpacks it into a folder that can serve as a read-only layer. Members are stored in the order in which they are
// added, without owner and time, so the same members give the same bytes. Throws error{io} if the archive cannot be
// written, error{missing_file, truncated, corrupted} if it cannot be read.
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

// Whether `file` is treated as an archive rather than a folder: its name ends with `.tar.zst` or `.tzst`.
bool is_archive_name(const std::filesystem::path& file);

// Writes to a temporary file in the same folder (container::output_file). close() renames it, so the archive appears
// completely or not at all.
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

// Larger members are neither written nor read. Reading also fails if the unpacked size is out of proportion to the
// compressed size.
inline constexpr std::uint64_t max_member_bytes = std::uint64_t{1} << 30;

struct archive_member {
  std::string name;
  std::uint64_t bytes = 0;
};

// Calls `take` for every regular file in the archive, with a function that reads its bytes. `take` need not call that
// function. Members are not trusted: a name may be any string, and a size is only what the archive claims.
void read_archive(
    const std::filesystem::path& file,
    const std::function<void(const archive_member&, const std::function<std::vector<std::byte>()>&)>& take);

}  // namespace kiln
