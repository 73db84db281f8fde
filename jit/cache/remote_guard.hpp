// Protects the cache from a bad remote layer (a circuit breaker). Nothing is thrown. If the server fails repeatedly,
// returns unusable entries, or takes more time than its answers are worth, it is not asked for a while, so a run with a
// bad server is not much slower than one without. Any thread may call.
#pragma once

#include <algorithm>
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
  // A call may take time_of_call plus its bytes divided by bytes_per_second; more counts as wasted. A pause begins when
  // most_wasted has been wasted within one `pause`.
  static constexpr std::chrono::milliseconds time_of_call{10};
  static constexpr double bytes_per_second = 16e6;
  static constexpr std::chrono::seconds most_wasted{2};

  // `failed` is called for every failure. `now` is a clock that tests can replace.
  remote_guard(std::shared_ptr<remote_layer> layer, std::function<void(const std::string&)> failed,
               std::function<clock::time_point()> now = clock::now)
      : layer_(std::move(layer)), failed_(std::move(failed)), now_(std::move(now)) {}

  explicit operator bool() const { return layer_ != nullptr; }
  std::string name() const { return layer_->name(); }
  // If the layer has the entry, passes it to `use`, which returns whether it was usable.
  template <class Use>
  void get(const std::string& entry_name, Use use) {
    ask([&](auto& count) {
      auto found = layer_->get(entry_name);
      const auto bytes = found ? found->size() : 0;
      const auto end = now_();
      count(end, found && use(std::move(*found)) ? bytes : 0);
    });
  }
  bool put(const std::string& entry_name, std::span<const std::byte> entry) {
    return ask([&](auto& count) {
      layer_->put(entry_name, entry);
      count(now_(), entry.size());
    });
  }

 private:
  // `call` must report when it ended and how many useful bytes it transferred.
  template <class Call>
  bool ask(Call call) {
    if (!layer_ || paused()) return false;
    const auto begin = now_();
    auto count = [&](clock::time_point end, std::size_t bytes) {
      if (count_time(begin, end, bytes)) failed_("its answers take longer than they save");
    };
    try {
      call(count);
    } catch (const std::exception& e) {
      count_failure();
      failed_(e.what());
      return false;
    }
    return true;
  }
  // Returns whether this call starts a pause.
  bool count_time(clock::time_point begin, clock::time_point end, std::size_t bytes) {
    const auto worth = time_of_call + std::chrono::duration_cast<clock::duration>(
                                          std::chrono::duration<double>(static_cast<double>(bytes) / bytes_per_second));
    std::lock_guard lock(mutex_);
    failures_ = 0;
    if (end - window_ >= pause) window_ = end, wasted_ = {};
    wasted_ += std::max(clock::duration::zero(), end - begin - worth);
    if (wasted_ < most_wasted) return false;
    window_ = end, wasted_ = {};
    failures_ = failures_before_pause;
    resume_ = end + pause;
    return true;
  }
  bool paused() {
    std::lock_guard lock(mutex_);
    return failures_ >= failures_before_pause && now_() < resume_;
  }
  // The count is not reset, so the first failure after a pause starts the next pause.
  void count_failure() {
    std::lock_guard lock(mutex_);
    if (++failures_ >= failures_before_pause) resume_ = now_() + pause;
  }

  std::shared_ptr<remote_layer> layer_;
  std::function<void(const std::string&)> failed_;
  std::function<clock::time_point()> now_;
  std::mutex mutex_;
  int failures_ = 0;  // in a row
  clock::time_point resume_{}, window_{};
  clock::duration wasted_{};  // since window_
};

}  // namespace kiln
