#include "jit/remote/job_folder.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "ir/error.hpp"

namespace kiln {
namespace {

std::string prefix() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("kiln-farm-{}-", host.data());
}

bool runs(pid_t process) { return kill(process, 0) == 0 || errno != ESRCH; }

}  // namespace

job_folder::job_folder(const std::filesystem::path& scratch) {
  std::string pattern = (scratch / fmt::format("{}{}-XXXXXX", prefix(), getpid())).string();
  if (!mkdtemp(pattern.data()))
    throw error(error_kind::io,
                fmt::format("{}: cannot create a folder for a job there: {}", scratch.string(), std::strerror(errno)));
  path_ = pattern;
}

job_folder::~job_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void sweep_job_folders(const std::filesystem::path& scratch) {
  std::error_code ignored;
  const std::string ours = prefix();
  for (std::filesystem::directory_iterator entry(scratch, ignored), end; entry != end; entry.increment(ignored)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with(ours)) continue;
    pid_t process = 0;
    auto [rest, code] = std::from_chars(name.data() + ours.size(), name.data() + name.size(), process);
    if (code == std::errc{} && *rest == '-' && process > 0 && !runs(process))
      std::filesystem::remove_all(entry->path(), ignored);
  }
}

}  // namespace kiln
