// The host CPU as a device. Native kernels are ELF objects loaded into this process, and grids run on a thread pool.
// Launches and copies are complete when the call returns, so all streams are equivalent. Any thread; one launch at a
// time uses the whole pool.
#pragma once

#include "runtime/device.hpp"
#include "runtime/host_allocator.hpp"
#include "runtime/thread_pool.hpp"

namespace kiln {

class host_device final : public device {
 public:
  // 0 threads means one per usable processor. For `pinned` see thread_pool.
  explicit host_device(unsigned threads = 0, bool pinned = false, host_allocator allocator = {});

  const device_info& info() const override { return info_; }
  bool runs(std::string_view target) const override;
  device_memory allocate(std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) override;
  void upload(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) override {
    copy(to, from, bytes, stream);
  }
  void download(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) override {
    copy(to, from, bytes, stream);
  }
  void fill_zero(void* to, std::size_t bytes, device_stream* stream = nullptr) override;
  void set_word(void* to, std::uint32_t value, device_stream* stream = nullptr) override {
    copy(to, &value, sizeof value, stream);
  }
  std::shared_ptr<const kernel_library> load(std::span<const native_kernel* const> kernels) override;
  void launch(const launch_request& request) noexcept override;
  void launch_together(std::span<const launch_request> requests) noexcept override;
  void begin_launches() noexcept override { team_.stay_awake(1); }
  void end_launches() noexcept override { team_.stay_awake(-1); }
  void check(device_stream*) override {}
  void synchronize(device_stream* = nullptr) override {}
  std::unique_ptr<device_stream> make_stream() override;
  std::unique_ptr<device_stream> own_stream() override { return make_stream(); }
  std::unique_ptr<device_stream> borrow_stream(void* native) override;
  std::unique_ptr<device_event> make_event() override;
  void wait(device_stream*, const device_event&) override {}

  thread_pool& team() { return team_; }

 private:
  void release(void* data, std::size_t bytes) noexcept override;
  host_allocator allocator_;
  thread_pool team_;
  device_info info_;
};

}  // namespace kiln
