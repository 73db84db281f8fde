// RAII owners of driver handles. A handle is owned only after the call that made it succeeded. Destructors never throw.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "runtime/device.hpp"
#include "runtime/gpu/state.hpp"

namespace kiln::gpu {

// A function of a loaded module. kernel_handle holds the address of this object.
struct function {
  void* native = nullptr;
  std::string name;
};

class raw_stream {
 public:
  explicit raw_stream(state& of) : state_(of) {
    of.require(of.functions().stream_create(&native_, stream_non_blocking), "making a stream");
  }
  ~raw_stream() {
    if (state_.hung()) return;
    current_device now(state_);
    state_.note(state_.functions().stream_destroy(native_));
  }
  raw_stream(const raw_stream&) = delete;
  raw_stream& operator=(const raw_stream&) = delete;
  void* get() const { return native_; }

 private:
  state& state_;
  void* native_ = nullptr;
};

class raw_event {
 public:
  raw_event(state& of, unsigned flags) : state_(of) {
    of.require(of.functions().event_create(&native_, flags), "making an event");
  }
  ~raw_event() {
    if (state_.hung()) return;
    current_device now(state_);
    state_.note(state_.functions().event_destroy(native_));
  }
  raw_event(const raw_event&) = delete;
  raw_event& operator=(const raw_event&) = delete;
  void* get() const { return native_; }

 private:
  state& state_;
  void* native_ = nullptr;
};

// A stream that records the first error of its launches, because launches do not throw.
class stream final : public device_stream {
 public:
  explicit stream(state& of) : own_(std::make_unique<raw_stream>(of)), native_(own_->get()) {}
  explicit stream(void* borrowed) : native_(borrowed) {}
  void* native() const override { return native_; }

  bool failed() const noexcept { return status_.load(std::memory_order_relaxed) != status_ok; }
  void fail(int status, const function* where) noexcept {
    int none = status_ok;
    if (status_.compare_exchange_strong(none, status)) where_.store(where);
  }
  // Returns the recorded error and clears it.
  std::pair<int, const function*> take() noexcept {
    int status = status_.exchange(status_ok);
    return {status, where_.exchange(nullptr)};
  }

 private:
  std::unique_ptr<raw_stream> own_;
  void* native_;
  std::atomic<int> status_{status_ok};
  std::atomic<const function*> where_{nullptr};
};

}  // namespace kiln::gpu
