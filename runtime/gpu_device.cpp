#include "runtime/gpu_device.hpp"

#include <array>
#include <optional>

#include "runtime/gpu/graph.hpp"
#include "runtime/gpu/memory_pool.hpp"
#include "runtime/gpu/module.hpp"
#include "runtime/gpu/properties.hpp"
#include "runtime/gpu/staging.hpp"
#include "runtime/gpu/tensor_maps.hpp"

namespace kiln {
namespace {

class gpu_event final : public device_event {
 public:
  explicit gpu_event(gpu::state& of, gpu::stream& own) : state_(of), own_(own), event_(of, 0) {}
  void record(device_stream* stream) override {
    gpu::working_device now(state_);
    auto& on = stream ? static_cast<gpu::stream&>(*stream) : own_;
    state_.require(state_.functions().event_record(event_.get(), on.native()), "recording an event");
  }
  void synchronize() override {
    gpu::working_device now(state_);
    state_.require(state_.wait_for_event(event_.get()), "waiting for an event");
  }
  bool happened() const override {
    gpu::working_device now(state_);
    int status = state_.functions().event_query(event_.get());
    if (status == gpu::status_not_ready) return false;
    state_.require(status, "querying an event");
    return true;
  }
  double milliseconds_since(const device_event& earlier) const override {
    gpu::working_device now(state_);
    float milliseconds = 0;
    state_.require(state_.functions().event_elapsed(&milliseconds, static_cast<const gpu_event&>(earlier).event_.get(),
                                                    event_.get()),
                   "time between events");
    return milliseconds;
  }
  void* native() const { return event_.get(); }

 private:
  gpu::state& state_;
  gpu::stream& own_;
  gpu::raw_event event_;
};

}  // namespace

// In order of construction: later members use earlier ones.
struct gpu_device::parts {
  parts(std::shared_ptr<const gpu::gpu_driver> driver, int ordinal)
      : state(std::move(driver), ordinal),
        now(state),
        own(state),
        pool(state, own.native()),
        staging(state),
        modules(state) {
    now.reset();
  }
  // Makes the context current while the parts are constructed and destroyed.
  struct scope {
    explicit scope(gpu::state& of) : current(std::make_unique<gpu::working_device>(of)) {}
    void reset() { current.reset(); }
    std::unique_ptr<gpu::working_device> current;
  };

  gpu::stream& of(device_stream* stream) { return stream ? static_cast<gpu::stream&>(*stream) : own; }
  void require_launched(device_stream* stream) {
    auto [status, where] = of(stream).take();
    if (status) state.require(status, where ? "launching kernel '" + where->name + "'" : "launching a kernel");
  }

  gpu::state state;
  scope now;
  gpu::stream own;
  gpu::memory_pool pool;
  gpu::staging staging;
  gpu::module_table modules;
};

gpu_device::gpu_device(std::shared_ptr<const gpu::gpu_driver> driver, int ordinal, bool in_background,
                       std::chrono::milliseconds wait_limit)
    : driver_(std::move(driver)) {
  auto make = [driver = driver_, ordinal, wait_limit] {
    auto made = std::make_shared<parts>(driver, ordinal);
    made->state.set_wait_limit(wait_limit);
    return made;
  };
  // Without another thread, the first call that waits makes the parts.
  const auto either = std::launch::async | std::launch::deferred;
  if (in_background) info_ = gpu::query_info(*driver_, ordinal);
  parts_ = std::async(in_background ? either : std::launch::deferred, make).share();
  if (!in_background) made(), info_ = gpu::query_info(*driver_, ordinal);
}

gpu_device::~gpu_device() {
  try {
    made();
  } catch (const std::exception&) {
    return;  // it was never opened
  }
  gpu::state& state = made().state;
  if (state.hung()) return;
  gpu::current_device now(state);
  if (!state.lost()) state.note(state.wait_for_stream(made().own.native()));
}

const device_info& gpu_device::info() const { return info_; }

bool gpu_device::runs(std::string_view target) const { return gpu::runs_on(driver_->which(), info_.target, target); }

void gpu_device::set_wait_limit(std::chrono::milliseconds limit) { made().state.set_wait_limit(limit); }

graph_usage gpu_device::graphs() const { return made().state.graphs(); }

graph_usage graphs_of(const device& of) {
  const auto* gpu = dynamic_cast<const gpu_device*>(&of);
  return gpu ? gpu->graphs() : graph_usage{};
}

device_memory gpu_device::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  return device_memory(*this, made().pool.allocate(bytes), bytes);
}

void gpu_device::release(void* data, std::size_t bytes) noexcept { made().pool.free(data, bytes); }

void gpu_device::copy(void* to, const void* from, std::size_t bytes, device_stream* stream) {
  if (bytes == 0) return;
  gpu::working_device now(made().state);
  made().state.require(made().state.functions().copy_on_device(to, from, bytes, made().of(stream).native()),
                       "copying on the device");
}

void gpu_device::upload(void* to, const void* from, std::size_t bytes, device_stream* stream) {
  if (bytes) made().staging.upload(to, from, bytes, made().of(stream).native());
}

void gpu_device::download(void* to, const void* from, std::size_t bytes, device_stream* stream) {
  if (bytes) made().staging.download(to, from, bytes, made().of(stream).native());
}

void gpu_device::fill_zero(void* to, std::size_t bytes, device_stream* stream) {
  if (bytes == 0) return;
  gpu::working_device now(made().state);
  made().state.require(made().state.functions().fill(to, 0, bytes, made().of(stream).native()), "filling memory");
}

void gpu_device::set_word(void* to, std::uint32_t value, device_stream* stream) {
  gpu::working_device now(made().state);
  made().state.require(made().state.functions().fill_words(to, value, 1, made().of(stream).native()),
                       "writing a number");
}

std::shared_ptr<const kernel_library> gpu_device::load(std::span<const native_kernel* const> kernels) {
  gpu::working_device now(made().state);
  return std::make_shared<gpu::library>(made().modules, kernels);
}

namespace {

// Devices that run something in this thread, the last one innermost. Runs within runs are rare, so deeper ones do
// without.
struct running_devices {
  std::array<std::optional<gpu::current_device>, 4> devices;
  std::size_t depth = 0;
};
thread_local running_devices running;

}  // namespace

void gpu_device::begin_launches() noexcept {
  if (running.depth < running.devices.size() && !made().state.lost())
    running.devices[running.depth].emplace(made().state);
  ++running.depth;
}

void gpu_device::end_launches() noexcept {
  --running.depth;
  if (running.depth < running.devices.size()) running.devices[running.depth].reset();
}

void gpu_device::launch(const launch_request& request) noexcept {
  gpu::state& state = made().state;
  gpu::stream& stream = made().of(request.stream);
  if (stream.failed()) return;
  auto* what = static_cast<const gpu::function*>(request.kernel.function);
  if (state.lost()) return;  // check() reports it
  constexpr std::size_t most_values = 256;
  std::array<void*, most_values> addresses;
  void** parameters = const_cast<void**>(request.parameters.data());
  if (request.parameters.empty()) {
    if (request.buffers.size() > most_values) return stream.fail(1, what);
    for (std::size_t i = 0; i < request.buffers.size(); ++i) addresses[i] = const_cast<void**>(&request.buffers[i]);
    parameters = addresses.data();
  }
  gpu::current_device now(state);
  int status = now.status();
  if (!status)
    status = state.functions().launch(what->native, static_cast<unsigned>(request.grid),
                                      static_cast<unsigned>(request.grid_y), static_cast<unsigned>(request.grid_z),
                                      static_cast<unsigned>(request.block), 1, 1,
                                      static_cast<unsigned>(request.lds_bytes), stream.native(), parameters, nullptr);
  if (status) {
    state.note(status);
    stream.fail(status, what);
  }
}

void gpu_device::check(device_stream* stream) {
  made().require_launched(stream);
  made().state.require_alive();
}

void gpu_device::synchronize(device_stream* stream) {
  gpu::state& state = made().state;
  int status = gpu::status_ok;
  if (!state.lost()) {
    gpu::current_device now(state);
    status = now.status() ? now.status() : state.wait_for_stream(made().of(stream).native());
  }
  made().require_launched(stream);  // report the earlier error first
  state.require(status, "waiting for the device");
  state.require_alive();
}

std::unique_ptr<device_stream> gpu_device::make_stream() {
  gpu::working_device now(made().state);
  return std::make_unique<gpu::stream>(made().state);
}

std::unique_ptr<device_stream> gpu_device::own_stream() { return std::make_unique<gpu::stream>(made().own.native()); }

std::unique_ptr<device_stream> gpu_device::borrow_stream(void* native) { return std::make_unique<gpu::stream>(native); }

std::unique_ptr<device_event> gpu_device::make_event() {
  gpu::working_device now(made().state);
  return std::make_unique<gpu_event>(made().state, made().own);
}

void gpu_device::wait(device_stream* stream, const device_event& event) {
  gpu::working_device now(made().state);
  made().state.require(made().state.functions().stream_wait_event(made().of(stream).native(),
                                                                  static_cast<const gpu_event&>(event).native(), 0),
                       "waiting for an event");
}

bool gpu_device::has_graphs() const { return gpu::missing_for_graphs(*driver_).empty(); }

std::unique_ptr<device_graph> gpu_device::make_graph(graph_maker how) {
  if (auto missing = gpu::missing_for_graphs(*driver_); !missing.empty())
    throw error(error_kind::unsupported, "device " + info().name + " has no graphs: its driver lacks " +
                                             std::string(missing) + ": update the driver");
  gpu::working_device now(made().state);
  if (how == graph_maker::capture) return std::make_unique<gpu::captured_graph>(made().state);
  return std::make_unique<gpu::node_graph>(made().state);
}

void gpu_device::encode(const tensor_map& map, void* base, encoded_tensor_map* to) {
  gpu::encode_tensor_map(made().state, map, base, to);
}

std::vector<std::byte> gpu_device::to_machine_code(std::span<const std::byte> object) {
  return gpu::to_machine_code(made().state, object);
}

}  // namespace kiln
