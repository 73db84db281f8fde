// A registry of the temporary files that this process has created and not yet renamed or removed. The creator of a
// temporary file holds a temporary_file while the file exists. If the process has to exit at once
// (tools/process_limits.hpp) and destructors will not run, remove_temporary_files() removes the files.
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

// Removes all registered files. Other threads may still be running, but their files must not be used afterwards.
void remove_temporary_files();

}  // namespace kiln
