#include "jit/cache/folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "jit/cache/kernel_cache.hpp"

namespace kiln {
namespace {

constexpr std::uint32_t world_writable = 0002, group_writable = 0020, sticky = 01000;

std::string cannot(const char* what, int code) { return std::string(what) + " (" + std::strerror(code) + ")"; }

std::string make_folders(file_system& files, const std::filesystem::path& folder) {
  file_status status;
  int code = files.status(folder, true, status);
  if (code == 0) return {};
  if (code != ENOENT) return cannot("cannot be examined", code);
  if (folder.has_parent_path() && folder.parent_path() != folder)
    if (auto why = make_folders(files, folder.parent_path()); !why.empty()) return why;
  code = files.make_folder(folder);
  // EEXIST: another process was faster.
  return code == 0 || code == EEXIST ? std::string() : cannot("cannot be made", code);
}

std::string refuse_shape(const file_status& status) {
  if (!status.is_folder) return "is not a folder";
  if (status.mode & world_writable) return "is writable by everybody";
  return {};
}

// Whoever may write to a folder above can put another in the place of the one below, unless it is sticky, as /tmp is.
std::string refuse_parents(file_system& files, const std::filesystem::path& folder) {
  for (auto parent = folder.parent_path(); parent != parent.parent_path(); parent = parent.parent_path()) {
    file_status status;
    if (int code = files.status(parent, true, status)) return cannot("lies in a folder that cannot be examined", code);
    if ((status.mode & world_writable) && !(status.mode & sticky)) return "lies in " + parent.string() + ", which is writable by everybody";
  }
  return {};
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

std::filesystem::path default_folder() {
  if (const char* folder = environment("KILN_CACHE_DIR")) return folder;
  // The XDG specification has relative paths ignored.
  if (const char* folder = environment("XDG_CACHE_HOME"); folder && *folder == '/') return std::filesystem::path(folder) / "kiln";
  if (const char* home = environment("HOME"); home && *home == '/') return std::filesystem::path(home) / ".cache" / "kiln";
  return {};
}

}  // namespace

std::string prepare_cache_folder(file_system& files, const std::filesystem::path& folder) {
  if (auto why = make_folders(files, folder); !why.empty()) return why;
  file_status link, target;
  if (int code = files.status(folder, false, link)) return cannot("cannot be examined", code);
  if (link.is_link && link.owner != files.user() && link.owner != 0) return "is a link that belongs to another user";
  if (int code = files.status(folder, true, target)) return cannot("cannot be examined", code);
  if (auto why = refuse_shape(target); !why.empty()) return why;
  if (target.owner != files.user()) return "belongs to another user";
  if (target.mode & group_writable) return "is writable by its group (chmod g-w makes it usable)";
  return refuse_parents(files, folder);
}

std::string refuse_layer(file_system& files, const std::filesystem::path& folder) {
  file_status status;
  if (int code = files.status(folder, true, status)) return cannot("cannot be examined", code);
  return refuse_shape(status);
}

cache_options default_cache_options(const std::filesystem::path& requested) {
  cache_options options;
  options.folder = requested.empty() ? default_folder() : requested;
  if (const char* layers = environment("KILN_CACHE_PATH"))
    for (std::string_view rest = layers; !rest.empty();) {
      std::string_view one = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      if (!one.empty()) options.read_only_layers.emplace_back(one);
    }
  return options;
}

}  // namespace kiln
