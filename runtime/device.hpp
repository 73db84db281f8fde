// A device that runs native kernels: memory, copies, loading, launches, streams, events. Every device passes the same
// conformance suite (test/runtime/device_conformance.hpp). Work given to one stream takes effect in the order it was
// given, and is complete when synchronize() of that stream returns; whether anything is asynchronous is the device's
// choice. A null stream is the device's own, which all threads share. Work on different streams is ordered by events
// only. All functions may be called from any thread. Errors are thrown as kiln::error; launch() does not throw.
// Everything that a device made must be gone before the device is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/native_kernel.hpp"
#include "runtime/shared_buffers.hpp"

namespace kiln {

class device;
class device_graph;  // runtime/graph/device_graph.hpp
enum class graph_maker : std::uint8_t;

struct device_info {
  std::string name;         // "host", "hip:0", "cuda:1"
  std::string description;  // "Intel(R) Xeon(R) Platinum 8481C"
  std::string family;       // target family whose native kernels it takes: "cpu", "amdgpu", "nvidia"
  unsigned threads = 1;     // host: that share one grid
  std::uint64_t memory_bytes = 0;
  std::string target = "native";    // what to finalize for: "sm_90", "gfx942"
  std::string architecture = {};    // as the driver names it: "gfx942:sramecc+:xnack-"; empty where it does not
  unsigned multiprocessors = 0;     // compute units, streaming multiprocessors
  std::string driver_version = {};  // "12.8"; empty for the host
  bool host_memory = true;          // kernels read and write host memory where it is
  std::size_t alignment = 64;       // of what allocate() gives, and of values in an arena
};

// Memory of a device, aligned to info().alignment at least. Owner of its bytes; the device must outlive it. When it
// goes, only work of the device's own stream may still use it.
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

// An order of work. Destroying one waits for nothing; a borrowed one leaves its owner's stream alone.
class device_stream {
 public:
  virtual ~device_stream() = default;
  virtual void* native() const {
    return nullptr;
  }  // a hipStream_t or CUstream; null on the host, and of the driver's default stream
};

// A moment in a stream.
class device_event {
 public:
  virtual ~device_event() = default;
  virtual void record(device_stream* stream = nullptr) = 0;
  virtual void synchronize() = 0;     // waits until what was recorded has happened
  virtual bool happened() const = 0;  // without waiting
  virtual double milliseconds_since(const device_event& earlier) const = 0;  // both have happened
};

// Plain data. The host takes `buffers`, the values of the arguments; a GPU takes `parameters`, the addresses of the
// arguments' values (a pointer each, or a tensor map), or `buffers` where there are none. Everything is read before
// launch() returns.
struct launch_request {
  kernel_handle kernel;
  std::int64_t grid = 1, grid_y = 1, grid_z = 1, block = 1, lds_bytes = 0;
  std::span<void* const> buffers;
  std::span<void* const> parameters = {};
  device_stream* stream = nullptr;
  bool waits = false;  // see launch::waits
};

// A tensor map as a kernel takes it.
struct alignas(64) encoded_tensor_map {
  std::byte bytes[128];
};

class device {
 public:
  virtual ~device() = default;
  virtual const device_info& info() const = 0;
  // Whether native kernels made for this target ("x86-64-v4", "gfx942") run here.
  virtual bool runs(std::string_view target) const = 0;
  virtual device_memory allocate(
      std::size_t bytes) = 0;  // throws error{absent} when there is no such memory; 0 bytes: empty
  // Between two places of the device's memory; from the host, which may reuse `from` at once; to the host, complete on
  // return.
  virtual void copy(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) = 0;
  virtual void fill_zero(void* to, std::size_t bytes, device_stream* stream = nullptr) = 0;
  virtual void set_word(void* to, std::uint32_t value, device_stream* stream = nullptr) = 0;  // 4 bytes
  virtual std::shared_ptr<const kernel_library> load(std::span<const native_kernel* const> kernels) = 0;
  // What cannot be launched is thrown by the stream's next check() or synchronize(), and nothing more is launched
  // before.
  virtual void launch(const launch_request& request) noexcept = 0;
  // Launches follow each other, from a begin to its end; what runs them may stay awake in between.
  virtual void begin_launches() noexcept {}
  virtual void end_launches() noexcept {}
  virtual void check(device_stream* stream) = 0;  // throws what the stream's launches left, waits for nothing
  virtual void synchronize(device_stream* stream = nullptr) = 0;

  virtual std::unique_ptr<device_stream> make_stream() = 0;
  // The device's own stream; what launches given to the result leave, only check() and synchronize() of the result
  // throw.
  virtual std::unique_ptr<device_stream> own_stream() = 0;
  // A stream of the caller's: a hipStream_t or CUstream, null for the driver's default stream. It must outlive the
  // result.
  virtual std::unique_ptr<device_stream> borrow_stream(void* native) = 0;
  virtual std::unique_ptr<device_event> make_event() = 0;
  virtual void wait(device_stream* stream,
                    const device_event& event) = 0;  // later work of the stream comes after the event

  // Work that is made once and launched whole. Without graphs make_graph() throws error{unsupported} and says why.
  virtual bool has_graphs() const { return false; }
  virtual std::unique_ptr<device_graph> make_graph(graph_maker how);

  // The descriptor of `map` over memory at `base`. Throws error{unsupported} on devices without tensor maps.
  virtual void encode(const tensor_map& map, void* base, encoded_tensor_map* to);
  // The object as the device itself would compile it (PTX to cubin), so that it can be kept; other objects come back as
  // they are.
  virtual std::vector<std::byte> to_machine_code(std::span<const std::byte> object) {
    return {object.begin(), object.end()};
  }

  // Constants and prepared buffers of programs on this device.
  shared_buffers& shared() { return shared_; }

 protected:
  friend class device_memory;
  virtual void release(void* data, std::size_t bytes) noexcept = 0;

 private:
  shared_buffers shared_;
};

inline device_memory::~device_memory() {
  if (data_) owner_->release(data_, bytes_);
}

}  // namespace kiln
