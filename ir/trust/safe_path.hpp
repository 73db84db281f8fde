// Checks who can change what a path refers to. A path is safe if only this user and root can change it: every folder on
// the way, also behind links, belongs to this user or root and is not writable by its group or others. A sticky folder
// such as /tmp may be writable, because only the owner of an entry can replace it. Any thread; nothing throws.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace kiln {

struct path_facts {
  bool is_folder = false, is_link = false;
  std::uint32_t owner = 0, mode = 0;  // permission bits
};

// Access to the file system, replaceable for tests. The functions return 0 or an errno value.
struct path_reader {
  std::function<int(const std::filesystem::path&, path_facts&)> examine;  // does not follow links
  std::function<int(const std::filesystem::path&, std::filesystem::path&)> read_link;
  std::uint32_t user = 0;
};
path_reader posix_path_reader();

// Follows `path`, which must be absolute, through all links and stores the facts of its target in `found`. Returns why
// a folder on the way is not safe ("lies in /x, which is writable by everybody"), or "" if all are. Does not judge the
// last component; see refuse_facts.
std::string refuse_way(const std::filesystem::path& path, const path_reader& reader, path_facts& found);

// Returns why others than this user and root can change this file or folder, or "" if nobody else can.
std::string refuse_facts(const path_facts& facts, std::uint32_t user);

// Checks the way and the last component.
std::string refuse_path(const std::filesystem::path& path, const path_reader& reader = posix_path_reader());

// Creates the folder and its missing parents with mode 0700. Ignores failures; using the folder then fails.
void make_private_folders(const std::filesystem::path& folder);

}  // namespace kiln
