// What every part of a GPU device shares: the driver, which device, its context, and whether it still works. Errors of
// the driver become kiln::error here, with the driver's own name for them. After an error that a device (its context)
// does not survive, every later call throws error{absent} without asking the driver, so nothing waits for a device that
// is gone.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/gpu/driver.hpp"

namespace kiln::gpu {

class state {
 public:
  // Retains the device's primary context (CUDA), which is released with this object.
  state(std::shared_ptr<const gpu_driver> from, int ordinal);
  ~state();
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  const driver_functions& functions() const { return driver_->functions(); }
  const gpu_driver& driver() const { return *driver_; }
  const std::string& name() const { return name_; }
  int ordinal() const { return ordinal_; }
  int handle() const { return handle_; }      // the driver's number of the device
  void* context() const { return context_; }  // CUDA's; null of HIP

  // Throws unless status is ok. `what` says what was tried: "launch of kernel 'softmax'".
  void require(int status, std::string_view what, std::string_view detail = {});
  // For calls whose failure has nobody to go to.
  void note(int status) noexcept;
  void require_alive() const;
  int lost() const noexcept {
    return lost_.load(std::memory_order_relaxed);
  }  // the status it was lost with, 0 while it works
  // Work that never ends: even releasing things could wait for it, so nothing is released any more.
  bool hung() const noexcept { return hung_.load(std::memory_order_relaxed); }

  // No limit: 0.
  void set_wait_limit(std::chrono::milliseconds limit) { wait_limit_ = limit.count(); }
  int wait_for_stream(void* stream) { return wait(functions().stream_query, functions().stream_synchronize, stream); }
  int wait_for_event(void* event) { return wait(functions().event_query, functions().event_synchronize, event); }

 private:
  friend class current_device;
  int wait(int (*query)(void*), int (*synchronize)(void*), void* object);
  std::shared_ptr<const gpu_driver> driver_;
  int ordinal_, handle_ = 0;
  void* context_ = nullptr;
  std::string name_;
  std::atomic<int> lost_{0};
  std::atomic<bool> hung_{false};
  std::atomic<std::int64_t> wait_limit_{0};
};

// Makes the device the calling thread's current one, and gives the thread back the one it had.
class current_device {
 public:
  explicit current_device(state& of) noexcept;
  ~current_device();
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;
  int status() const { return status_; }

 private:
  state& state_;
  void* context_before_ = nullptr;
  int device_before_ = 0, status_ = 0;
  bool changed_ = false;
};

// The same for calls that may throw, on a device that works.
struct working_device : current_device {
  explicit working_device(state& of) : current_device((of.require_alive(), of)) {
    of.require(status(), "making the device current");
  }
};

}  // namespace kiln::gpu
