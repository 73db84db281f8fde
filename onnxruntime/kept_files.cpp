#include "onnxruntime/kept_files.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <vector>

namespace kiln::ort {
namespace {

namespace fs = std::filesystem;
using file_clock = fs::file_time_type::clock;

constexpr auto in_use = std::chrono::minutes(10);   // a file may be, for so long after it was marked
constexpr auto abandoned = std::chrono::hours(24);  // a work folder is, when nothing was added to it for so long

struct kept_file {
  fs::file_time_type used;
  std::uintmax_t bytes;
  fs::path path;
};

}  // namespace

void mark_used(const fs::path& file) noexcept {
  std::error_code ignored;
  fs::last_write_time(file, file_clock::now(), ignored);
}

void make_room(const fs::path& folder, std::uintmax_t most_bytes) noexcept try {
  const auto now = file_clock::now();
  std::error_code absent;  // another process may remove what this one sees
  std::vector<kept_file> files;
  std::uintmax_t all = 0;
  for (fs::directory_iterator at(folder, absent), end; !absent && at != end; at.increment(absent)) {
    std::error_code gone;
    const fs::path path = at->path();
    const bool is_link = at->is_symlink(gone), is_folder = !is_link && at->is_directory(gone);
    const fs::file_time_type used = fs::last_write_time(path, gone);
    if (gone || is_link) continue;
    if (is_folder && path.filename().string().starts_with("work.") && now - used > abandoned)
      fs::remove_all(path, gone);
    if (is_folder || path.extension() != ".kiln") continue;
    const std::uintmax_t bytes = at->file_size(gone);
    if (gone) continue;
    all += bytes;
    files.push_back({used, bytes, path});
  }
  std::ranges::sort(files, {}, &kept_file::used);
  for (const kept_file& f : files) {
    if (all <= most_bytes || now - f.used < in_use) break;
    std::error_code gone;
    if (fs::remove(f.path, gone)) all -= f.bytes;
  }
} catch (const std::exception&) {
  // There is no memory for the list. The next part that is compiled tries again.
}

}  // namespace kiln::ort
