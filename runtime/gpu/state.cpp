#include "runtime/gpu/state.hpp"

#include <thread>

namespace kiln::gpu {

state::state(std::shared_ptr<const gpu_driver> from, int ordinal)
    : driver_(std::move(from)),
      ordinal_(ordinal),
      name_(std::string(kiln::gpu::name(driver_->which())) + ":" + std::to_string(ordinal)) {
  if (ordinal < 0 || ordinal >= driver_->device_count())
    throw error(error_kind::no_device, "device " + name_ + ": is not here, " + driver_->path() + " has " +
                                           std::to_string(driver_->device_count()) + " devices; see kiln devices");
  require(functions().device_get(&handle_, ordinal), "opening the device");
  if (functions().primary_context_retain)
    require(functions().primary_context_retain(&context_, handle_), "making its context");
}

state::~state() {
  if (context_ && !hung()) functions().primary_context_release(handle_);
}

void state::require(int status, std::string_view what, std::string_view detail) {
  if (status == status_ok) return;
  note(status);
  status_meaning meaning = meaning_of(status);
  std::string text = "device " + name_ + ": " + std::string(what) + ": " + driver_->error_name(status);
  if (!meaning.text.empty()) text += " (" + std::string(meaning.text) + ")";
  if (!detail.empty()) text += ": " + std::string(detail);
  throw error(meaning.kind, text);
}

void state::note(int status) noexcept {
  if (status == status_ok || !meaning_of(status).lost) return;
  int none = 0;
  lost_.compare_exchange_strong(none, status);
}

void state::require_alive() const {
  int status = lost();
  if (status == 0) return;
  std::string why =
      hung() ? "work that did not finish in time"
             : driver_->error_name(status) +
                   (meaning_of(status).text.empty() ? "" : " (" + std::string(meaning_of(status).text) + ")");
  throw error(error_kind::device_lost,
              "device " + name_ + ": was lost to an earlier error, " + why + "; open it again");
}

int state::wait(int (*query)(void*), int (*synchronize)(void*), void* object) {
  auto limit = std::chrono::milliseconds(wait_limit_.load());
  if (limit.count() == 0) return synchronize(object);
  // Spins for short work as the driver would. For long work, polls every 50 microseconds.
  constexpr auto eager = std::chrono::milliseconds(2);
  auto begin = std::chrono::steady_clock::now();
  for (int status = query(object);; status = query(object)) {
    if (status != status_not_ready) return status;
    auto waited = std::chrono::steady_clock::now() - begin;
    if (waited > limit) {
      hung_ = true;
      note(702);  // the status that the driver's own watchdog reports
      return 702;
    }
    if (waited > eager) std::this_thread::sleep_for(std::chrono::microseconds(50));
    else std::this_thread::yield();
  }
}

current_device::current_device(state& of) noexcept : state_(of) {
  const driver_functions& f = of.functions();
  if (f.context_set) {
    status_ = f.context_get(&context_before_);
    if (status_ || context_before_ == of.context_) return;
    status_ = f.context_set(of.context_);
  } else {
    status_ = f.device_current(&device_before_);
    if (status_ || device_before_ == of.ordinal_) return;
    status_ = f.device_set(of.ordinal_);
  }
  changed_ = status_ == status_ok;
}

current_device::~current_device() {
  if (!changed_) return;
  const driver_functions& f = state_.functions();
  state_.note(f.context_set ? f.context_set(context_before_) : f.device_set(device_before_));
}

}  // namespace kiln::gpu
