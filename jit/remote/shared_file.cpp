#include "jit/remote/shared_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/container/files.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

bool lies_below(const fs::path& file, const fs::path& root) {
  return std::mismatch(root.begin(), root.end(), file.begin(), file.end()).first == root.end() && file != root;
}

// The path with all symbolic links resolved, or an empty path if it is not below one of the roots.
fs::path resolved(const std::string& path, const std::vector<fs::path>& roots) {
  std::error_code failed;
  const fs::path plain(path);
  for (const fs::path& given : roots) {
    const fs::path root = fs::canonical(given, failed);
    if (failed || !plain.is_absolute()) continue;
    // Check the path lexically before touching the file system, so that the result discloses nothing about other files.
    if (!lies_below(plain.lexically_normal(), root) &&
        !lies_below(plain.lexically_normal(), fs::absolute(given).lexically_normal()))
      continue;
    const fs::path file = fs::canonical(plain, failed);
    if (!failed && lies_below(file, root)) return file;
  }
  return {};
}

}  // namespace

void link_shared_file(const farm_input& input, const fs::path& to, const std::vector<fs::path>& roots,
                      const std::string& worker) {
  const fs::path file = resolved(input.path, roots);
  if (file.empty())
    throw error(error_kind::io, fmt::format("the job's input '{}' is not on storage that worker {} may read: it must "
                                            "be a file below one of its --shared-root folders",
                                            input.name, worker));
  auto shared = container::mapped_file::open(file);
  if (shared->bytes().size() != input.bytes || blake3(shared->bytes()) != input.hash)
    throw error(error_kind::corrupted,
                fmt::format("the job's input '{}' is not the file that was submitted", input.name));
  std::error_code failed;
  fs::create_symlink(file, to, failed);
  if (failed) throw error(error_kind::io, fmt::format("{}: {}", to.string(), failed.message()));
}

}  // namespace kiln
