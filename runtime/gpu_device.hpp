// A GPU as a device: AMD's through HIP, NVIDIA's through the CUDA driver, opened at run time (runtime/gpu/driver.hpp).
// One implementation over two tables of functions; docs/architecture.md says how it is built. All functions from any
// thread: the calling thread's current device is set for the call and put back. Several devices, and several gpu_device
// of one GPU, may be open at a time. Errors: error{no_device, out_of_memory} when the device or its memory is not
// there, error{compile_failed} for kernels that the driver refuses, error{timed_out} for work past a limit,
// error{internal} for kernels that fail. After an error that the device does not survive every call throws
// error{device_lost}; what the device made may then still be destroyed.
#pragma once

#include <chrono>
#include <future>
#include <memory>

#include "runtime/device.hpp"
#include "runtime/gpu/driver.hpp"
#include "runtime/graph/graph_usage.hpp"

namespace kiln {

class gpu_device final : public device {
 public:
  // With `in_background`, another thread makes the device's context, which takes a tenth of a second or more. Calls
  // that need it wait for it and throw its error; info(), runs() and has_graphs() do not.
  gpu_device(std::shared_ptr<const gpu::gpu_driver> driver, int ordinal, bool in_background = false,
             std::chrono::milliseconds wait_limit = {});
  ~gpu_device() override;

  const device_info& info() const override;
  bool runs(std::string_view target) const override;
  device_memory allocate(std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) override;
  void upload(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) override;
  void download(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) override;
  void fill_zero(void* to, std::size_t bytes, device_stream* stream = nullptr) override;
  void set_word(void* to, std::uint32_t value, device_stream* stream = nullptr) override;
  std::shared_ptr<const kernel_library> load(std::span<const native_kernel* const> kernels) override;
  void launch(const launch_request& request) noexcept override;
  // In between, this device is current for the calling thread: foreign calls (plan.hpp) find it, and launches need not
  // make it so.
  void begin_launches() noexcept override;
  void end_launches() noexcept override;
  void check(device_stream* stream) override;
  void synchronize(device_stream* stream = nullptr) override;
  std::unique_ptr<device_stream> make_stream() override;
  std::unique_ptr<device_stream> own_stream() override;
  std::unique_ptr<device_stream> borrow_stream(void* native) override;
  std::unique_ptr<device_event> make_event() override;
  void wait(device_stream* stream, const device_event& event) override;
  bool has_graphs() const override;
  std::unique_ptr<device_graph> make_graph(graph_maker how) override;
  graph_usage graphs() const;
  void encode(const tensor_map& map, void* base, encoded_tensor_map* to) override;
  std::vector<std::byte> to_machine_code(std::span<const std::byte> object) override;

  // Limits how long synchronize() and downloads wait for work. When the limit is exceeded, they throw error{timed_out}
  // and the device counts as lost. 0, the default, means no limit.
  void set_wait_limit(std::chrono::milliseconds limit);

 private:
  void release(void* data, std::size_t bytes) noexcept override;
  struct parts;
  parts& made() const { return *parts_.get(); }
  std::shared_ptr<const gpu::gpu_driver> driver_;
  device_info info_;
  std::shared_future<std::shared_ptr<parts>> parts_;
};

}  // namespace kiln
