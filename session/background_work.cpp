#include "session/background_work.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace kiln {
namespace {

constexpr std::size_t most_tasks = 64;
constexpr int nice_value = 10;

}  // namespace

background_work::~background_work() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

bool background_work::add(task work) {
  std::lock_guard lock(mutex_);
  if (tasks_.size() == most_tasks) return false;
  tasks_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { this->work(stop); });
  changed_.notify_one();
  return true;
}

bool background_work::idle() const {
  std::lock_guard lock(mutex_);
  return tasks_.empty() && !busy_;
}

void background_work::work(const std::stop_token& stop) {
  setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), nice_value);  // failure does no harm
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !tasks_.empty(); })) {
    if (stop.stop_requested()) return;
    task next = std::exchange(tasks_.front(), nullptr);
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    try {
      next(stop);
    } catch (const std::exception&) {
      // The model runs without the result.
    }
    next = nullptr;
    lock.lock();
    busy_ = false;
  }
}

}  // namespace kiln
