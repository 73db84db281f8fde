#include "onnxruntime/gpu.hpp"

#include <algorithm>

namespace kiln::ort {
namespace {

constexpr struct {
  const char* kind;
  std::uint32_t vendor;
} kinds[] = {{"cuda", 0x10de}, {"hip", 0x1002}};

std::uint32_t vendor_of(const std::string& kind) {
  return std::ranges::find(kinds, kind, [](const auto& k) { return std::string(k.kind); })->vendor;
}

struct allocator : OrtAllocator {
  explicit allocator(std::shared_ptr<gpu> g) : OrtAllocator{}, of(std::move(g)) {
    version = api_version;
    // Null tells ONNX Runtime that there is no memory.
    OrtAllocator::Alloc = [](OrtAllocator* self, std::size_t bytes) noexcept -> void* {
      try {
        return static_cast<allocator*>(self)->of->allocate(bytes);
      } catch (...) {
        return nullptr;
      }
    };
    OrtAllocator::Free = [](OrtAllocator* self, void* data) noexcept { static_cast<allocator*>(self)->of->free(data); };
    OrtAllocator::Info = [](const OrtAllocator* self) noexcept -> const OrtMemoryInfo* {
      return static_cast<const allocator*>(self)->of->memory();
    };
  }
  std::shared_ptr<gpu> of;
};

// Where a tensor is.
struct place {
  explicit place(const OrtMemoryDevice* device)
      : on_gpu(runtime().ep->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_GPU),
        vendor(runtime().ep->MemoryDevice_GetVendorId(device)),
        ordinal(static_cast<int>(runtime().ep->MemoryDevice_GetDeviceId(device))) {}
  bool is(const gpu& g) const { return on_gpu && vendor == g.vendor() && ordinal == g.ordinal(); }
  // In ONNX Runtime 1.23 for the CPU, addresses that a Python program binds on "cuda" have no vendor.
  bool may_be(const gpu& g) const { return on_gpu && (vendor == g.vendor() || vendor == 0) && ordinal == g.ordinal(); }
  bool on_gpu;
  std::uint32_t vendor;
  int ordinal;
};

struct copies : OrtDataTransferImpl {
  explicit copies(gpu_list list) : OrtDataTransferImpl{}, all(std::move(list)) {
    ort_version_supported = api_version;
    OrtDataTransferImpl::Release = [](OrtDataTransferImpl* self) noexcept { delete static_cast<copies*>(self); };
    CanCopy = [](const OrtDataTransferImpl* self, const OrtMemoryDevice* from, const OrtMemoryDevice* to) noexcept {
      return static_cast<const copies*>(self)->between(place(from), place(to)) != nullptr;
    };
    CopyTensors = [](OrtDataTransferImpl* self, const OrtValue** from, OrtValue** to, OrtSyncStream**,
                     std::size_t count) noexcept -> OrtStatus* {
      return guarded([&] {
        for (std::size_t i = 0; i < count; ++i) static_cast<copies*>(self)->copy(from[i], to[i]);
      });
    };
  }

  // The GPU that does it; null if it is none of ours.
  gpu* between(const place& from, const place& to) const {
    for (const auto& g : all)
      if ((from.is(*g) && (!to.on_gpu || to.may_be(*g))) || (to.is(*g) && (!from.on_gpu || from.may_be(*g))))
        return g.get();
    return nullptr;
  }

  void copy(const OrtValue* from, OrtValue* to) const {
    const place begin(runtime().ep->Value_GetMemoryDevice(from)), end(runtime().ep->Value_GetMemoryDevice(to));
    gpu* const by = between(begin, end);
    if (!by) throw std::runtime_error("kiln: a copy between devices that are not its own");
    const void* source = nullptr;
    void* target = nullptr;
    std::size_t bytes = 0;
    require(runtime().api->GetTensorSizeInBytes(from, &bytes));
    if (!bytes) return;
    require(runtime().api->GetTensorData(from, &source));
    require(runtime().api->GetTensorMutableData(to, &target));
    if (begin.on_gpu && end.on_gpu) by->copy(target, source, bytes);
    else if (begin.on_gpu) by->download(target, source, bytes);
    else by->upload(target, source, bytes);
  }

  gpu_list all;
};

}  // namespace

gpu::gpu(const std::string& kind, int ordinal)
    : name_(kind + ":" + std::to_string(ordinal)), ordinal_(ordinal), vendor_(vendor_of(kind)) {
  OrtMemoryInfo* made = nullptr;
  require(runtime().api->CreateMemoryInfo_V2(("Kiln " + name_).c_str(), OrtMemoryInfoDeviceType_GPU, vendor_, ordinal,
                                             OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &made));
  memory_.reset(made);
}

kiln_device* gpu::opened() {
  const std::lock_guard lock(mutex_);
  if (!device_) {
    kiln_device* made = nullptr;
    check(library().device_open(name_.c_str(), &made));
    device_ = {made, library().device_close};
  }
  return device_.get();
}

void* gpu::allocate(std::size_t bytes) {
  void* made = nullptr;
  check(library().device_allocate(opened(), bytes, &made));
  return made;
}

void gpu::free(void* data) noexcept {
  if (data) library().device_free(device_.get(), data);
}

void gpu::upload(void* to, const void* from, std::size_t bytes) {
  check(library().device_upload(opened(), to, from, bytes));
}

void gpu::download(void* to, const void* from, std::size_t bytes) {
  check(library().device_download(opened(), to, from, bytes));
}

void gpu::copy(void* to, const void* from, std::size_t bytes) {
  check(library().device_copy(opened(), to, from, bytes));
}

gpu_list find_gpus() {
  gpu_list all;
  try {
    for (const auto& k : kinds)
      for (std::size_t i = 0, count = library().device_count(k.kind); i < count; ++i)
        all.push_back(std::make_shared<gpu>(k.kind, static_cast<int>(i)));
  } catch (const std::exception&) {
    // Sessions say that the library is missing.
  }
  return all;
}

OrtAllocator* make_allocator(std::shared_ptr<gpu> of) { return new allocator(std::move(of)); }
void release_allocator(OrtAllocator* made) noexcept { delete static_cast<allocator*>(made); }
OrtDataTransferImpl* make_copies(gpu_list between) { return new copies(std::move(between)); }

}  // namespace kiln::ort
