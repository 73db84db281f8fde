// A folder for one job of a farm worker; the destructor removes it. Its name contains the host name and process id, so
// a worker that starts later on the same machine can remove the folders that a killed worker left behind.
#pragma once

#include <filesystem>

namespace kiln {

class job_folder {
 public:
  // Throws error{io} if the folder cannot be created.
  explicit job_folder(const std::filesystem::path& scratch);
  ~job_folder();
  job_folder(const job_folder&) = delete;
  job_folder& operator=(const job_folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Removes the job folders of processes of this machine that no longer exist. Errors are ignored.
void sweep_job_folders(const std::filesystem::path& scratch);

}  // namespace kiln
