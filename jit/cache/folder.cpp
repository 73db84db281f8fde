#include "jit/cache/folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ir/trust/safe_path.hpp"
#include "jit/cache/kernel_cache.hpp"

namespace kiln {
namespace {

std::string cannot(const char* what, int code) { return std::string(what) + " (" + std::strerror(code) + ")"; }

std::string make_folders(file_system& files, const std::filesystem::path& folder) {
  file_status status;
  int code = files.status(folder, true, status);
  if (code == 0) return {};
  if (code != ENOENT) return cannot("cannot be examined", code);
  if (folder.has_parent_path() && folder.parent_path() != folder)
    if (auto why = make_folders(files, folder.parent_path()); !why.empty()) return why;
  code = files.make_folder(folder);
  // EEXIST: another process has just created it.
  return code == 0 || code == EEXIST ? std::string() : cannot("cannot be created", code);
}

path_reader reader_of(file_system& files) {
  auto examine = [&files](const std::filesystem::path& path, path_facts& facts) {
    file_status status;
    int code = files.status(path, false, status);
    facts = {status.is_folder, status.is_link, status.owner, status.mode};
    return code;
  };
  auto read_link = [&files](const std::filesystem::path& path, std::filesystem::path& target) {
    return files.read_link(path, target);
  };
  return {examine, read_link, files.user()};
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

std::filesystem::path default_folder() {
  if (const char* folder = environment("KILN_CACHE_DIR")) return folder;
  // The XDG specification says that relative paths are ignored.
  if (const char* folder = environment("XDG_CACHE_HOME"); folder && *folder == '/')
    return std::filesystem::path(folder) / "kiln";
  if (const char* home = environment("HOME"); home && *home == '/')
    return std::filesystem::path(home) / ".cache" / "kiln";
  return {};
}

}  // namespace

std::string prepare_cache_folder(file_system& files, const std::filesystem::path& folder) {
  if (auto why = make_folders(files, folder); !why.empty()) return why;
  path_facts found;
  std::string way = refuse_way(folder, reader_of(files), found);
  if (way.empty() && !found.is_folder) return "is not a folder";
  if (way.empty()) way = refuse_facts(found, files.user());
  return way.empty() && found.owner != files.user() ? "belongs to another user" : way;
}

std::string refuse_layer(file_system& files, const std::filesystem::path& folder, bool signatures_required) {
  if (signatures_required) {
    file_status status;
    if (int code = files.status(folder, true, status)) return cannot("cannot be examined", code);
    if (!status.is_folder) return "is not a folder";
    return status.mode & 0002 ? "is writable by everybody" : "";
  }
  path_facts found;
  std::string way = refuse_way(folder, reader_of(files), found);
  if (way.empty() && !found.is_folder) return "is not a folder";
  return way.empty() ? refuse_facts(found, files.user()) : way;
}

cache_options default_cache_options(const std::filesystem::path& requested) {
  cache_options options;
  options.consent.user = user_keys::of_this_user();
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
