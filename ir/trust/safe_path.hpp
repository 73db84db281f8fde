// Who can change what a path leads to. A path is safe when nobody but this user and root can: every folder on the way,
// through links too, belongs to this user or root and cannot be written by its group or others. A sticky folder such as
// /tmp may be writable, because only the owner of what lies in it can replace that. Any thread; nothing throws.
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

// What is asked of the file system; functions return 0 or an errno value.
struct path_reader {
  std::function<int(const std::filesystem::path&, path_facts&)> examine;  // without following a link
  std::function<int(const std::filesystem::path&, std::filesystem::path&)> read_link;
  std::uint32_t user = 0;
};
path_reader posix_path_reader();

// Walks to `path`, which is absolute, and fills in what lies there behind all links. Says why it is not safe on the
// way: "lies in /x, which is writable by everybody"; "" where it is. The last component itself is for the caller to
// judge, see refuse_facts.
std::string refuse_way(const std::filesystem::path& path, const path_reader& reader, path_facts& found);

// What is wrong with a file or folder that only this user and root may change; "" where nothing is.
std::string refuse_facts(const path_facts& facts, std::uint32_t user);

// Both.
std::string refuse_path(const std::filesystem::path& path, const path_reader& reader = posix_path_reader());

}  // namespace kiln
