#include "ir/trust/safe_path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <fstream>

namespace kiln {
namespace {

constexpr std::uint32_t world_writable = 0002, group_writable = 0020, sticky = 01000;
constexpr int most_links = 40;  // the limit of Linux

// In a user namespace that maps only some users, the owners of system folders have no number and appear as this one.
bool is_unmapped(std::uint32_t owner) {
  static const std::uint32_t stand_in = [] {
    std::ifstream map("/proc/self/uid_map"), overflow("/proc/sys/kernel/overflowuid");
    std::uint64_t inside = 0, outside = 0, count = 0, number = 0;
    if (!(map >> inside >> outside >> count) || !(overflow >> number)) return UINT32_MAX;
    bool second_row = static_cast<bool>(map >> outside);
    return second_row || (inside <= number && number - inside < count) ? UINT32_MAX
                                                                       : static_cast<std::uint32_t>(number);
  }();
  return owner == stand_in && stand_in != UINT32_MAX;
}

std::string refuse_parent(const std::filesystem::path& folder, const path_facts& facts, std::uint32_t user) {
  std::string lies = "lies in " + folder.string() + ", which ";
  if (!facts.is_folder) return lies + "is not a folder";
  if (facts.owner != user && facts.owner != 0 && !is_unmapped(facts.owner)) return lies + "belongs to another user";
  if (facts.mode & sticky) return {};
  if (facts.mode & world_writable) return lies + "is writable by everybody";
  if (facts.mode & group_writable) return lies + "is writable by its group (chmod g-w makes it usable)";
  return {};
}

}  // namespace

path_reader posix_path_reader() {
  auto examine = [](const std::filesystem::path& path, path_facts& facts) {
    struct stat s{};
    if (::lstat(path.c_str(), &s) != 0) return errno;
    facts = {S_ISDIR(s.st_mode), S_ISLNK(s.st_mode), s.st_uid, s.st_mode & 07777u};
    return 0;
  };
  auto read_link = [](const std::filesystem::path& path, std::filesystem::path& target) {
    std::string text(PATH_MAX, '\0');
    ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
    if (size < 0) return errno;
    text.resize(static_cast<std::size_t>(size));
    target = text;
    return 0;
  };
  return {examine, read_link, ::geteuid()};
}

std::string refuse_way(const std::filesystem::path& path, const path_reader& reader, path_facts& found) {
  std::deque<std::filesystem::path> left;
  for (const auto& part : path.relative_path()) left.push_back(part);
  std::filesystem::path at = "/";
  auto cannot = [](int code) {
    return std::string("lies in a folder that cannot be examined (") + std::strerror(code) + ")";
  };
  if (int code = reader.examine(at, found)) return cannot(code);
  for (int links = 0; !left.empty();) {
    std::filesystem::path part = std::move(left.front());
    left.pop_front();
    if (part.empty() || part == ".") continue;
    // `at` contains no links, so ".." leads to its parent.
    std::filesystem::path next = part == ".." ? at.parent_path() : at / part;
    if (auto why = refuse_parent(at, found, reader.user); !why.empty()) return why;
    if (int code = reader.examine(next, found)) return cannot(code);
    if (!found.is_link) {
      at = std::move(next);
      continue;
    }
    if (found.owner != reader.user && found.owner != 0 && !is_unmapped(found.owner))
      return left.empty() ? "is a link that belongs to another user"
                          : "leads through a link that belongs to another user";
    std::filesystem::path target;
    if (++links > most_links) return cannot(ELOOP);
    if (int code = reader.read_link(next, target)) return cannot(code);
    std::deque<std::filesystem::path> parts;
    for (const auto& p : target.relative_path()) parts.push_back(p);
    left.insert(left.begin(), parts.begin(), parts.end());
    if (target.is_absolute()) at = "/";
    if (int code = reader.examine(at, found)) return cannot(code);
  }
  return {};
}

std::string refuse_facts(const path_facts& facts, std::uint32_t user) {
  if (facts.mode & world_writable) return "is writable by everybody";
  if (facts.owner != user && facts.owner != 0) return "belongs to another user";
  if (facts.mode & group_writable) return "is writable by its group (chmod g-w makes it usable)";
  return {};
}

std::string refuse_path(const std::filesystem::path& path, const path_reader& reader) {
  path_facts found;
  if (auto why = refuse_way(path, reader, found); !why.empty()) return why;
  return refuse_facts(found, reader.user);
}

void make_private_folders(const std::filesystem::path& folder) {
  struct stat s{};
  if (::lstat(folder.c_str(), &s) == 0) return;
  if (folder.has_parent_path() && folder.parent_path() != folder) make_private_folders(folder.parent_path());
  ::mkdir(folder.c_str(), 0700);
}

}  // namespace kiln
