// A folder for one job of a farm worker, removed with the object. Its name holds machine and process, so that a worker
// which starts later sweeps away what a killed one on the same machine has left.
#pragma once

#include <filesystem>

namespace kiln {

class job_folder {
 public:
  // Throws error{io}.
  explicit job_folder(const std::filesystem::path& scratch);
  ~job_folder();
  job_folder(const job_folder&) = delete;
  job_folder& operator=(const job_folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Removes the folders of processes of this machine that are no more. Errors do not matter.
void sweep_job_folders(const std::filesystem::path& scratch);

}  // namespace kiln
