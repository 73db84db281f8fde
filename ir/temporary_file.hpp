// Names of temporary files that this process has made and neither renamed nor removed yet. Whoever makes a temporary
// holds such a name, so that a process which has to end at once (tools/process_limits.hpp) can remove what destructors
// no longer will.
#pragma once

#include <filesystem>

namespace kiln {

class temporary_file {
 public:
  explicit temporary_file(const std::filesystem::path& file);
  ~temporary_file();
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

 private:
  std::filesystem::path file_;
};

// Removes them all. Other threads may still be at work; nothing of theirs may be used afterwards.
void remove_temporary_files();

}  // namespace kiln
