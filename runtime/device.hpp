// A device that runs native kernels: memory, copies, loading, launches, streams, events. Every device passes the same
// conformance suite (test/runtime/device_conformance.hpp).
//
// The operations of one stream take effect in order and are complete when synchronize() of that stream returns. A
// device may execute them asynchronously or not. A null stream means the device's own stream, which all threads share.
// Only events order work on different streams.
//
// All functions may be called from any thread. Errors are thrown as kiln::error, but launch() does not throw.
// Everything that a device made must be destroyed before the device.
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
  std::string family;       // target family of the kernels that it runs: "cpu", "amdgpu", "nvidia"
  unsigned threads = 1;     // host: number of threads that share a grid
  std::uint64_t memory_bytes = 0;
  std::string target = "native";    // target to finalize for: "sm_90", "gfx942"
  std::string architecture = {};    // the driver's name: "gfx942:sramecc+:xnack-"; empty if unknown
  unsigned multiprocessors = 0;     // number of compute units or streaming multiprocessors
  std::string driver_version = {};  // "12.8"; empty for the host
  bool host_memory = true;          // kernels access host memory directly
  std::size_t alignment = 64;       // of memory from allocate() and of values in an arena
};

// Memory of a device, aligned to at least info().alignment. Owns its bytes; the device must outlive it. On destruction,
// work of the device's own stream may still be using it, but no work of other streams.
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

// A loaded function in the device's representation. Valid as long as its library.
struct kernel_handle {
  const void* function = nullptr;
};

// A set of kernels that were loaded together.
class kernel_library {
 public:
  virtual ~kernel_library() = default;
  // The function `symbol` of kernel number `index` in load()'s list. Throws error{corrupted} if there is no such
  // function.
  virtual kernel_handle find(std::size_t index, std::string_view symbol) const = 0;
};

// A sequence of operations that run in order. The destructor does not wait for them. Destroying a borrowed stream does
// not affect the owner's stream.
class device_stream {
 public:
  virtual ~device_stream() = default;
  // A hipStream_t or CUstream. Null on the host and for the driver's default stream.
  virtual void* native() const { return nullptr; }
};

// A point in the work of a stream.
class device_event {
 public:
  virtual ~device_event() = default;
  virtual void record(device_stream* stream = nullptr) = 0;
  virtual void synchronize() = 0;                                            // waits for the recorded point
  virtual bool happened() const = 0;                                         // does not wait
  virtual double milliseconds_since(const device_event& earlier) const = 0;  // both must have happened
};

// Plain data. The host takes `buffers`, the values of the arguments. A GPU takes `parameters`, the addresses of the
// arguments' values (a pointer or a tensor map each); if there are none, it takes `buffers`. launch() reads everything
// before it returns.
struct launch_request {
  kernel_handle kernel;
  std::int64_t grid = 1, grid_y = 1, grid_z = 1, block = 1, lds_bytes = 0;
  std::span<void* const> buffers;
  std::span<void* const> parameters = {};
  device_stream* stream = nullptr;
  bool waits = false;  // see launch::waits
  // For the host: number of blocks. `buffers` holds the arguments of all blocks in sequence, and the grid is executed
  // once for each block: for the blocks one after another, or, if `items_at_once` is not 0, so many items of all
  // blocks, then the next.
  std::int64_t blocks = 1, items_at_once = 0;
};

// A tensor map in the representation that kernels take.
struct alignas(64) encoded_tensor_map {
  std::byte bytes[128];
};

class device {
 public:
  virtual ~device() = default;
  virtual const device_info& info() const = 0;
  // Whether native kernels compiled for `target` ("x86-64-v4", "gfx942") can run on this device.
  virtual bool runs(std::string_view target) const = 0;
  virtual device_memory allocate(std::size_t bytes) = 0;  // throws error{out_of_memory}; 0 bytes: empty
  // Between two places of the device's memory; from the host, which may reuse `from` at once; to the host, complete on
  // return.
  virtual void copy(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes, device_stream* stream = nullptr) = 0;
  virtual void fill_zero(void* to, std::size_t bytes, device_stream* stream = nullptr) = 0;
  virtual void set_word(void* to, std::uint32_t value, device_stream* stream = nullptr) = 0;  // 4 bytes
  virtual std::shared_ptr<const kernel_library> load(std::span<const native_kernel* const> kernels) = 0;
  // Never throws. A failed launch is reported by the next check() or synchronize() of the stream; until then further
  // launches are dropped.
  virtual void launch(const launch_request& request) noexcept = 0;
  // Launches that do not depend on each other. The host runs their work items side by side.
  virtual void launch_together(std::span<const launch_request> requests) noexcept {
    for (const launch_request& request : requests) launch(request);
  }
  // Bracket a sequence of launches. In between, the device may keep its threads awake.
  virtual void begin_launches() noexcept {}
  virtual void end_launches() noexcept {}
  virtual void check(device_stream* stream) = 0;  // throws the first error of the stream's launches; does not wait
  virtual void synchronize(device_stream* stream = nullptr) = 0;

  virtual std::unique_ptr<device_stream> make_stream() = 0;
  // A new stream that refers to the device's own stream. Errors of launches on the result are thrown only by check()
  // and synchronize() of the result.
  virtual std::unique_ptr<device_stream> own_stream() = 0;
  // Wraps a stream of the caller: a hipStream_t or CUstream, null for the driver's default stream. The caller's stream
  // must outlive the result.
  virtual std::unique_ptr<device_stream> borrow_stream(void* native) = 0;
  virtual std::unique_ptr<device_event> make_event() = 0;
  // Makes later work of `stream` wait for the event. Does not block the host.
  virtual void wait(device_stream* stream, const device_event& event) = 0;

  // Graphs: work that is built once and launched as a whole. On devices without graphs, make_graph() throws
  // error{unsupported} with the reason.
  virtual bool has_graphs() const { return false; }
  virtual std::unique_ptr<device_graph> make_graph(graph_maker how);

  // Encodes the descriptor of `map` for memory at `base`. Throws error{unsupported} on devices without tensor maps.
  virtual void encode(const tensor_map& map, void* base, encoded_tensor_map* to);
  // Compiles an object for this device so that the result can be stored (PTX to cubin). Other objects are returned
  // unchanged.
  virtual std::vector<std::byte> to_machine_code(std::span<const std::byte> object) {
    return {object.begin(), object.end()};
  }

  // Constants and prepared buffers that programs on this device share.
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
