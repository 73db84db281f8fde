#include "jit/tuning/device_turns.hpp"

#include <thread>

namespace kiln {

void device_turns::begin_run() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !taken_ && !wanted_; });
  ++runs_;
}

void device_turns::end_run() {
  std::lock_guard lock(mutex_);
  if (--runs_ == 0 && wanted_) changed_.notify_all();
}

device_turns::turn device_turns::take() {
  std::unique_lock lock(mutex_);
  auto next = next_;
  lock.unlock();
  std::this_thread::sleep_until(next);
  lock.lock();
  wanted_ = true;
  changed_.wait(lock, [this] { return runs_ == 0; });
  wanted_ = false;
  taken_ = true;
  began_ = clock::now();
  return turn(*this);
}

void device_turns::give_up() {
  std::lock_guard lock(mutex_);
  taken_ = false;
  changed_.notify_all();
}

void device_turns::end_turn() {
  std::lock_guard lock(mutex_);
  auto now = clock::now();
  next_ = now + std::chrono::duration_cast<clock::duration>((now - began_) * (1 / share_ - 1));
  taken_ = false;
  changed_.notify_all();
}

}  // namespace kiln
