// A check of bytes that is made when they are first read, such as the hash of a tensor in a mapped file.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

namespace kiln {

// Any thread. `check` throws if the bytes are not what they should be.
class deferred_check {
 public:
  explicit deferred_check(std::function<void()> check) : check_(std::move(check)) {}
  // Returns once the check has passed. The first caller makes it while the others wait; after a failure, each caller
  // makes it again and gets the error.
  void require() {
    if (!passed_.load(std::memory_order_acquire)) make();
  }

 private:
  void make() {
    std::lock_guard lock(mutex_);
    if (passed_.load(std::memory_order_relaxed)) return;
    check_();
    passed_.store(true, std::memory_order_release);
  }

  std::function<void()> check_;
  std::mutex mutex_;
  std::atomic<bool> passed_ = false;
};

}  // namespace kiln
