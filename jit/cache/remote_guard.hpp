// What stands between the cache and a remote layer: nothing is thrown, and a server that fails again and again is left alone for a while, so
// that a run without network is not slower than one without remote layer. Any thread may call.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "jit/cache/remote_layer.hpp"

namespace kiln {

class remote_guard {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr int failures_before_pause = 3;
  static constexpr std::chrono::seconds pause{30};

  // `failed` hears of every failure. `now` is for tests.
  remote_guard(std::shared_ptr<remote_layer> layer, std::function<void(const std::string&)> failed, std::function<clock::time_point()> now = clock::now)
      : layer_(std::move(layer)), failed_(std::move(failed)), now_(std::move(now)) {}

  explicit operator bool() const { return layer_ != nullptr; }
  std::string name() const { return layer_->name(); }
  std::optional<std::vector<std::byte>> get(const std::string& entry_name) {
    std::optional<std::vector<std::byte>> found;
    ask([&] { found = layer_->get(entry_name); });
    return found;
  }
  bool put(const std::string& entry_name, std::span<const std::byte> entry) {
    return ask([&] { layer_->put(entry_name, entry); });
  }

 private:
  template <class Call>
  bool ask(Call call) {
    if (!layer_ || paused()) return false;
    try {
      call();
    } catch (const std::exception& e) {
      count_failure();
      failed_(e.what());
      return false;
    }
    std::lock_guard lock(mutex_);
    failures_ = 0;
    return true;
  }
  bool paused() {
    std::lock_guard lock(mutex_);
    return failures_ >= failures_before_pause && now_() < resume_;
  }
  // After the pause one more failure begins the next one.
  void count_failure() {
    std::lock_guard lock(mutex_);
    if (++failures_ >= failures_before_pause) resume_ = now_() + pause;
  }

  std::shared_ptr<remote_layer> layer_;
  std::function<void(const std::string&)> failed_;
  std::function<clock::time_point()> now_;
  std::mutex mutex_;
  int failures_ = 0;  // in a row
  clock::time_point resume_{};
};

}  // namespace kiln
