// The state that all parts of a GPU device share: the driver, which device, its context, and whether it still works.
// Errors of the driver become kiln::error here, with the driver's own name for them. After an error that a device (its
// context) does not survive, every later call throws error{device_lost} without asking the driver, so nothing waits for
// a device that is gone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/gpu/driver.hpp"
#include "runtime/graph/graph_usage.hpp"

namespace kiln::gpu {

class state {
 public:
  // On CUDA, retains the device's primary context; the destructor releases it.
  state(std::shared_ptr<const gpu_driver> from, int ordinal);
  ~state();
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  const driver_functions& functions() const { return driver_->functions(); }
  const gpu_driver& driver() const { return *driver_; }
  const std::string& name() const { return name_; }
  int ordinal() const { return ordinal_; }
  int handle() const { return handle_; }      // the driver's handle of the device
  void* context() const { return context_; }  // CUDA: the primary context; HIP: null

  // Throws unless `status` is ok. `what` names the operation for the message: "launch of kernel 'softmax'".
  void require(int status, std::string_view what, std::string_view detail = {});
  // Records a failure in a context that cannot throw (destructors, callbacks).
  void note(int status) noexcept;
  void require_alive() const;
  // The driver status with which the device was lost; 0 while it works.
  int lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  // True if some work did not end within the limit. Then nothing is released any more, because a release could wait for
  // that work.
  bool hung() const noexcept { return hung_.load(std::memory_order_relaxed); }

  // A limit of 0 means none.
  void set_wait_limit(std::chrono::milliseconds limit) { wait_limit_ = limit.count(); }
  int wait_for_stream(void* stream) { return wait(functions().stream_query, functions().stream_synchronize, stream); }
  int wait_for_event(void* event) { return wait(functions().event_query, functions().event_synchronize, event); }

  // The graphs that are ready to be launched. gpu_graph counts itself.
  graph_usage graphs() const noexcept {
    return {graphs_.load(std::memory_order_relaxed), graph_bytes_.load(std::memory_order_relaxed)};
  }
  void add_graph(std::size_t bytes) noexcept { ++graphs_, graph_bytes_ += bytes; }
  void remove_graph(std::size_t bytes) noexcept { --graphs_, graph_bytes_ -= bytes; }

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
  std::atomic<std::size_t> graphs_{0}, graph_bytes_{0};
};

// Makes the device current for the calling thread. The destructor restores the previous device.
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

// The same for calls that may throw. Throws if the device is lost.
struct working_device : current_device {
  explicit working_device(state& of) : current_device((of.require_alive(), of)) {
    of.require(status(), "making the device current");
  }
};

}  // namespace kiln::gpu
