// Runs tasks that nobody waits for (writing cache entries to a disk, which takes milliseconds each) on a few threads of
// its own, which start with the first task. Several at once, because a file system synchronizes files together. Tasks
// must not throw. Any thread may call any function; the destructor waits for all tasks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln {

class write_behind {
 public:
  write_behind() = default;
  ~write_behind();
  write_behind(const write_behind&) = delete;
  write_behind& operator=(const write_behind&) = delete;

  // Runs the task now if the process cannot start a thread.
  void add(std::function<void()> task);
  // Waits until every task that was added before the call has run.
  void finish();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable added_, done_;
  std::deque<std::function<void()>> tasks_;
  std::size_t running_ = 0, idle_ = 0;
  bool ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace kiln
