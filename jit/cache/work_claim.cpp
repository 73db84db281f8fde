#include "jit/cache/work_claim.hpp"

#include <cerrno>

namespace kiln {

work_claim work_claim::take(file_system& files, const std::filesystem::path& folder, const std::string& key) {
  work_claim claim;
  if (folder.empty()) return claim;
  claim.files_ = &files;
  claim.file_ = folder / (std::string(lock_prefix) + key);
  // The owner unlinks the lock file before it unlocks. If we locked an unlinked file, we own nothing: retry.
  for (int attempt = 0; attempt < 8; ++attempt) {
    int descriptor = -1;
    if (files.open_to_lock(claim.file_, descriptor) != 0) return claim;
    int code = files.lock(descriptor);
    file_status locked, named;
    bool same = code == 0 && files.status(descriptor, locked) == 0 && files.status(claim.file_, false, named) == 0 &&
                locked.inode == named.inode;
    if (same) {
      claim.descriptor_ = descriptor;
      return claim;
    }
    files.close(descriptor);
    claim.busy_ = code == EWOULDBLOCK;
    if (code != 0) return claim;
  }
  return claim;
}

work_claim& work_claim::operator=(work_claim&& other) noexcept {
  if (this == &other) return *this;
  release();
  files_ = other.files_;
  file_ = std::move(other.file_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  busy_ = other.busy_;
  return *this;
}

void work_claim::release() {
  if (descriptor_ < 0) return;
  files_->remove(file_);
  files_->close(std::exchange(descriptor_, -1));
}

}  // namespace kiln
