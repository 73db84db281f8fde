// A device that runs native kernels: memory, copies, loading, launches. Every device passes the same conformance suite
// (test/runtime/device_conformance.hpp). Launches and copies of one calling thread take effect in the order they were made and are
// complete when synchronize() returns; whether they are asynchronous is the device's choice.
// All functions may be called from any thread. Errors are thrown as kiln::error; launch() does not throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ir/native_kernel.hpp"

namespace kiln {

class device;

struct device_info {
  std::string name;         // "host"
  std::string description;  // "Intel(R) Xeon(R) Platinum 8481C"
  std::string family;       // target family whose native kernels it takes: "cpu"
  unsigned threads = 1;     // that share one grid
  std::uint64_t memory_bytes = 0;
};

// Memory of a device, aligned to arena_alignment at least. Owner of its bytes; the device must outlive it.
class device_memory {
 public:
  device_memory() = default;
  device_memory(device& owner, void* data, std::size_t bytes) : owner_(&owner), data_(data), bytes_(bytes) {}
  ~device_memory();
  device_memory(device_memory&& other) noexcept { *this = std::move(other); }
  device_memory& operator=(device_memory&& other) noexcept {
    std::swap(owner_, other.owner_), std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return bytes_; }

 private:
  device* owner_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A loaded function, as its device knows it. Valid as long as its library.
struct kernel_handle {
  const void* function = nullptr;
};

// Kernels loaded together.
class kernel_library {
 public:
  virtual ~kernel_library() = default;
  // The function `symbol` of the kernel at `index` of load()'s list; throws error{corrupted} where it has none.
  virtual kernel_handle find(std::size_t index, std::string_view symbol) const = 0;
};

// Plain data: pointers into device memory, in the order of the kernel's arguments.
struct launch_request {
  kernel_handle kernel;
  std::int64_t grid = 1, grid_y = 1, grid_z = 1, block = 1, lds_bytes = 0;
  std::span<void* const> buffers;
};

class device {
 public:
  virtual ~device() = default;
  virtual const device_info& info() const = 0;
  // Whether native kernels made for this target ("x86-64-v4", "gfx942") run here.
  virtual bool runs(std::string_view target) const = 0;
  virtual device_memory allocate(std::size_t bytes) = 0;  // throws error{absent} when there is no such memory; 0 bytes: empty
  // Either side may be host memory.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual std::shared_ptr<const kernel_library> load(std::span<const native_kernel* const> kernels) = 0;
  virtual void launch(const launch_request& request) noexcept = 0;
  virtual void synchronize() = 0;

 protected:
  friend class device_memory;
  virtual void release(void* data, std::size_t bytes) noexcept = 0;
};

inline device_memory::~device_memory() {
  if (data_) owner_->release(data_, bytes_);
}

}  // namespace kiln
