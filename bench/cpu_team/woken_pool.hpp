// The peer of the thread team: threads that sleep on a condition variable and are woken for every kernel, as
// task pools do it. The caller works too and waits on another one. Items are taken one chunk at a time from a common
// counter. Used by one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::bench {

class woken_pool {
 public:
  using work = std::function<void(std::int64_t begin, std::int64_t end)>;

  explicit woken_pool(unsigned threads) : members_(threads) {
    for (unsigned i = 1; i < threads; ++i) threads_.emplace_back([this] { live(); });
  }
  ~woken_pool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  woken_pool(const woken_pool&) = delete;

  void run(std::int64_t grid, const work& f) {
    {
      std::lock_guard lock(mutex_);
      f_ = &f, grid_ = grid, chunk_ = std::max<std::int64_t>(1, grid / (4 * members_)), next_ = 0;
      busy_ = members_ - 1;
      ++job_;
    }
    wake_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void take() {
    for (std::int64_t begin; (begin = next_.fetch_add(chunk_)) < grid_;) (*f_)(begin, std::min(begin + chunk_, grid_));
  }
  void live() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || job_ != seen; });
      if (stop_) return;
      seen = job_;
      lock.unlock();
      take();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  const unsigned members_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const work* f_ = nullptr;
  std::int64_t grid_ = 0, chunk_ = 1;
  std::atomic<std::int64_t> next_{0};
  std::uint64_t job_ = 0;
  unsigned busy_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kiln::bench
