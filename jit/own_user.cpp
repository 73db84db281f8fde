#include "jit/own_user.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "ir/error.hpp"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr uid_t first_id = 0x60000000, nobody = 65534;

[[noreturn]] void refuse(const fs::path& what, int number) {
  throw error(error_kind::io, fmt::format("{}: cannot be given to a user of its own, and jobs do not run as root: {}",
                                          what.string(), std::strerror(number)));
}

// Every link becomes a copy of the file behind it, which root may be the only one to read.
void replace_links(const fs::path& folder) {
  std::vector<fs::path> links;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_symlink()) links.push_back(entry.path());
  for (const fs::path& link : links) {
    const fs::path target = fs::canonical(link);
    fs::remove(link);
    fs::copy_file(target, link);
  }
}

bool give(const fs::path& path, uid_t id) { return lchown(path.c_str(), id, id) == 0; }

void give_all(const fs::path& folder, uid_t id) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!give(entry.path(), id)) refuse(entry.path(), errno);
}

void become_another_user(const fs::path& folder) {
  uid_t id = first_id + static_cast<uid_t>(getpid());
  try {
    replace_links(folder);
    if (!give(folder, id) && !give(folder, id = nobody)) refuse(folder, errno);
    give_all(folder, id);
  } catch (const fs::filesystem_error& e) {
    throw error(error_kind::io, fmt::format("{}: {}", folder.string(), e.what()));
  }
  // The system calls themselves: the process has one thread, and the C library's functions are for all threads.
  if (setgroups(0, nullptr) != 0 || syscall(SYS_setresgid, id, id, id) != 0 || syscall(SYS_setresuid, id, id, id) != 0)
    refuse(folder, errno);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of user has cleared it
}

void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  syscall(SYS_capset, &header, none.data());
}

bool write_text(const char* file, const std::string& text) {
  const int descriptor = open(file, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool written = write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(descriptor);
  return written;
}

// In the namespace, the process is this user alone.
void enter_user_namespace() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return;
  write_text("/proc/self/uid_map", fmt::format("{0} {0} 1", user));
  write_text("/proc/self/setgroups", "deny");
  write_text("/proc/self/gid_map", fmt::format("{0} {0} 1", group));
  unshare(CLONE_NEWNET | CLONE_NEWIPC);
  drop_capabilities();
}

}  // namespace

void enter_own_user(const fs::path& folder) {
  if (geteuid() != 0) return enter_user_namespace();
  unshare(CLONE_NEWNET | CLONE_NEWIPC);
  become_another_user(folder);
}

void check_own_user_folder(const fs::path& folder) {
  if (geteuid() != 0) return;
  std::error_code missing;
  for (fs::path on_the_way = fs::canonical(folder, missing); !missing && !on_the_way.empty();
       on_the_way = on_the_way.parent_path()) {
    const fs::perms allowed = fs::status(on_the_way).permissions();
    if ((allowed & fs::perms::others_exec) == fs::perms::none)
      throw error(error_kind::usage,
                  fmt::format("jobs of root's worker run as users of their own, who cannot enter {}: "
                              "let others through (chmod o+x) or choose another --scratch",
                              on_the_way.string()));
    if (on_the_way == on_the_way.root_path()) break;
  }
}

}  // namespace kiln
