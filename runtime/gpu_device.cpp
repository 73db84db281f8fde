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
        info(gpu::query_info(state.driver(), ordinal)),
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
  device_info info;
  scope now;
  gpu::stream own;
  gpu::memory_pool pool;
  gpu::staging staging;
  gpu::module_table modules;
};

gpu_device::gpu_device(std::shared_ptr<const gpu::gpu_driver> driver, int ordinal)
    : parts_(std::make_unique<parts>(std::move(driver), ordinal)) {}

gpu_device::~gpu_device() {
  gpu::state& state = parts_->state;
  if (state.hung()) return;
  gpu::current_device now(state);
  if (!state.lost()) state.note(state.wait_for_stream(parts_->own.native()));
}

const device_info& gpu_device::info() const { return parts_->info; }

bool gpu_device::runs(std::string_view target) const {
  return gpu::runs_on(parts_->state.driver().which(), parts_->info.target, target);
}

void gpu_device::set_wait_limit(std::chrono::milliseconds limit) { parts_->state.set_wait_limit(limit); }

graph_usage gpu_device::graphs() const { return parts_->state.graphs(); }

graph_usage graphs_of(const device& of) {
  const auto* gpu = dynamic_cast<const gpu_device*>(&of);
  return gpu ? gpu->graphs() : graph_usage{};
}

device_memory gpu_device::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  return device_memory(*this, parts_->pool.allocate(bytes), bytes);
}

void gpu_device::release(void* data, std::size_t bytes) noexcept { parts_->pool.free(data, bytes); }

void gpu_device::copy(void* to, const void* from, std::size_t bytes, device_stream* stream) {
  if (bytes == 0) return;
  gpu::working_device now(parts_->state);
  parts_->state.require(parts_->state.functions().copy_on_device(to, from, bytes, parts_->of(stream).native()),
                        "copying on the device");
}

void gpu_device::upload(void* to, const void* from, std::size_t bytes, device_stream* stream) {
  if (bytes) parts_->staging.upload(to, from, bytes, parts_->of(stream).native());
}

void gpu_device::download(void* to, const void* from, std::size_t bytes, device_stream* stream) {
  if (bytes) parts_->staging.download(to, from, bytes, parts_->of(stream).native());
}

void gpu_device::fill_zero(void* to, std::size_t bytes, device_stream* stream) {
  if (bytes == 0) return;
  gpu::working_device now(parts_->state);
  parts_->state.require(parts_->state.functions().fill(to, 0, bytes, parts_->of(stream).native()), "filling memory");
}

void gpu_device::set_word(void* to, std::uint32_t value, device_stream* stream) {
  gpu::working_device now(parts_->state);
  parts_->state.require(parts_->state.functions().fill_words(to, value, 1, parts_->of(stream).native()),
                        "writing a number");
}

std::shared_ptr<const kernel_library> gpu_device::load(std::span<const native_kernel* const> kernels) {
  gpu::working_device now(parts_->state);
  return std::make_shared<gpu::library>(parts_->modules, kernels);
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
  if (running.depth < running.devices.size() && !parts_->state.lost())
    running.devices[running.depth].emplace(parts_->state);
  ++running.depth;
}

void gpu_device::end_launches() noexcept {
  --running.depth;
  if (running.depth < running.devices.size()) running.devices[running.depth].reset();
}

void gpu_device::launch(const launch_request& request) noexcept {
  gpu::state& state = parts_->state;
  gpu::stream& stream = parts_->of(request.stream);
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
  parts_->require_launched(stream);
  parts_->state.require_alive();
}

void gpu_device::synchronize(device_stream* stream) {
  gpu::state& state = parts_->state;
  int status = gpu::status_ok;
  if (!state.lost()) {
    gpu::current_device now(state);
    status = now.status() ? now.status() : state.wait_for_stream(parts_->of(stream).native());
  }
  parts_->require_launched(stream);  // report the earlier error first
  state.require(status, "waiting for the device");
  state.require_alive();
}

std::unique_ptr<device_stream> gpu_device::make_stream() {
  gpu::working_device now(parts_->state);
  return std::make_unique<gpu::stream>(parts_->state);
}

std::unique_ptr<device_stream> gpu_device::own_stream() { return std::make_unique<gpu::stream>(parts_->own.native()); }

std::unique_ptr<device_stream> gpu_device::borrow_stream(void* native) { return std::make_unique<gpu::stream>(native); }

std::unique_ptr<device_event> gpu_device::make_event() {
  gpu::working_device now(parts_->state);
  return std::make_unique<gpu_event>(parts_->state, parts_->own);
}

void gpu_device::wait(device_stream* stream, const device_event& event) {
  gpu::working_device now(parts_->state);
  parts_->state.require(parts_->state.functions().stream_wait_event(parts_->of(stream).native(),
                                                                    static_cast<const gpu_event&>(event).native(), 0),
                        "waiting for an event");
}

bool gpu_device::has_graphs() const { return gpu::missing_for_graphs(parts_->state.driver()).empty(); }

std::unique_ptr<device_graph> gpu_device::make_graph(graph_maker how) {
  if (auto missing = gpu::missing_for_graphs(parts_->state.driver()); !missing.empty())
    throw error(error_kind::unsupported, "device " + info().name + " has no graphs: its driver lacks " +
                                             std::string(missing) + ": update the driver");
  gpu::working_device now(parts_->state);
  if (how == graph_maker::capture) return std::make_unique<gpu::captured_graph>(parts_->state);
  return std::make_unique<gpu::node_graph>(parts_->state);
}

void gpu_device::encode(const tensor_map& map, void* base, encoded_tensor_map* to) {
  gpu::encode_tensor_map(parts_->state, map, base, to);
}

std::vector<std::byte> gpu_device::to_machine_code(std::span<const std::byte> object) {
  return gpu::to_machine_code(parts_->state, object);
}

}  // namespace kiln
