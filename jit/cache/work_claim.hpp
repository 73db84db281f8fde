// A claim to compile one entry, so that processes that start at the same time with a cold cache compile each kernel
// once. It is only an optimization: if a claim is not available or lost, work is done twice. The claim is a lock
// (flock) on a file `.lock-KEY` in the cache's folder; the operating system releases it when the owner ends for any
// reason. A process that waits for a claim does so with its own time limit. Move-only; used by one thread at a time.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "jit/cache/file_system.hpp"

namespace kiln {

// Prefix of the names of lock files.
inline constexpr std::string_view lock_prefix = ".lock-";

class work_claim {
 public:
  // Tries to take the claim without waiting. If the file system has no locks or is not writable, or `folder` is empty,
  // the result is neither held nor busy.
  static work_claim take(file_system& files, const std::filesystem::path& folder, const std::string& key);
  work_claim() = default;
  work_claim(work_claim&& other) noexcept
      : files_(other.files_),
        file_(std::move(other.file_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        busy_(other.busy_) {}
  work_claim& operator=(work_claim&& other) noexcept;
  ~work_claim() { release(); }

  bool busy() const { return busy_; }             // another process has the claim
  bool held() const { return descriptor_ >= 0; }  // this object has the claim
  void release();

 private:
  file_system* files_ = nullptr;
  std::filesystem::path file_;
  int descriptor_ = -1;
  bool busy_ = false;
};

}  // namespace kiln
