#include "ir/temporary_file.hpp"

#include <unistd.h>

#include <mutex>
#include <set>

namespace kiln {
namespace {

struct registry {
  std::mutex mutex;
  std::multiset<std::filesystem::path> files;
};

// Never destroyed: threads that are still running at exit may hold names.
registry& names() {
  static auto* all = new registry;
  return *all;
}

}  // namespace

temporary_file::temporary_file(const std::filesystem::path& file) : file_(file) {
  std::lock_guard lock(names().mutex);
  names().files.insert(file_);
}

temporary_file::~temporary_file() {
  std::lock_guard lock(names().mutex);
  names().files.extract(file_);
}

void remove_temporary_files() {
  std::lock_guard lock(names().mutex);
  for (const auto& file : names().files) ::unlink(file.c_str());
}

}  // namespace kiln
