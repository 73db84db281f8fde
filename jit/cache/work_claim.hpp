// A claim to make one entry, so that processes which start cold together make each once. Only that: a claim that cannot
// be had, or is lost, costs work done twice and nothing else. It is a lock (flock) on a file `.lock-KEY` in the cache's
// folder, which the operating system lets go of when the holder ends in whatever way; whoever waits sets the bound and
// goes on without. Move-only; one thread at a time.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "jit/cache/file_system.hpp"

namespace kiln {

// Names of lock files begin with this.
inline constexpr std::string_view lock_prefix = ".lock-";

class work_claim {
 public:
  // Never waits. Where the file system has no locks, cannot be written, or `folder` is empty, nobody is in the way: not
  // busy.
  static work_claim take(file_system& files, const std::filesystem::path& folder, const std::string& key);
  work_claim() = default;
  work_claim(work_claim&& other) noexcept
      : files_(other.files_),
        file_(std::move(other.file_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        busy_(other.busy_) {}
  work_claim& operator=(work_claim&& other) noexcept;
  ~work_claim() { release(); }

  bool busy() const { return busy_; }             // somebody else is at it
  bool held() const { return descriptor_ >= 0; }  // and others see it
  void release();

 private:
  file_system* files_ = nullptr;
  std::filesystem::path file_;
  int descriptor_ = -1;
  bool busy_ = false;
};

}  // namespace kiln
