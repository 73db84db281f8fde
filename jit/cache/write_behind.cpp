#include "jit/cache/write_behind.hpp"

#include <system_error>
#include <utility>

namespace kiln {
namespace {

constexpr std::size_t most_threads = 8;

}  // namespace

write_behind::~write_behind() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  added_.notify_all();
}

void write_behind::add(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    bool served = tasks_.size() < idle_ || threads_.size() == most_threads;
    if (!served) {
      try {
        threads_.emplace_back([this] { work(); });
        served = true;
      } catch (const std::system_error&) {
        served = !threads_.empty();
      }
    }
    if (served) tasks_.push_back(std::exchange(task, nullptr));
  }
  if (task) task();
  else added_.notify_one();
}

void write_behind::finish() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return tasks_.empty() && running_ == 0; });
}

void write_behind::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    added_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    lock.unlock();
    task();
    task = nullptr;  // releases what it holds before anybody is told that it is done
    lock.lock();
    if (--running_ == 0 && tasks_.empty()) done_.notify_all();
  }
}

}  // namespace kiln
