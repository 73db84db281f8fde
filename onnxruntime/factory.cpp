// The functions that ONNX Runtime calls to get the execution providers, the only ones that the library exports.
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>

#include "onnxruntime/gpu.hpp"
#include "onnxruntime/provider.hpp"

namespace kiln::ort {

functions& runtime() {
  static functions all;
  return all;
}

namespace {

// Both factories of the library. They differ in the memory that tensors are in: the host's, or that of a GPU.
class factory : public OrtEpFactory {
 public:
  factory() : OrtEpFactory{} {
    ort_version_supported = api_version;
    GetVendor = [](const OrtEpFactory*) noexcept -> const char* { return "Kiln"; };
    GetVendorId = [](const OrtEpFactory*) noexcept -> std::uint32_t { return 0; };
    GetVersion = [](const OrtEpFactory*) noexcept -> const char* { return KILN_VERSION; };
    ReleaseEp = [](OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<provider*>(ep); };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* made) noexcept { release_allocator(made); };
    // A run waits for its end.
    IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
    CreateSyncStreamForDevice = [](OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                   OrtSyncStreamImpl** to) noexcept -> OrtStatus* {
      *to = nullptr;
      return nullptr;
    };
  }
  virtual ~factory() = default;
};

// The option `device` says on what Kiln runs; to ONNX Runtime it is a provider for the CPU, where the tensors are.
class host_factory : public factory {
 public:
  host_factory() {
    GetName = [](const OrtEpFactory*) noexcept -> const char* { return provider_name; };
    GetSupportedDevices = find_devices;
    CreateEp = create;
    // ONNX Runtime calls these although there is nothing to make.
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** to) noexcept -> OrtStatus* {
      *to = nullptr;
      return nullptr;
    };
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** to) noexcept -> OrtStatus* {
      *to = nullptr;
      return nullptr;
    };
  }

 private:
  static OrtStatus* find_devices(OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                                 OrtEpDevice** to, size_t most, size_t* found) noexcept {
    *found = 0;
    return guarded([&] {
      for (size_t i = 0; i < count && *found < most; ++i)
        if (runtime().api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU)
          require(runtime().ep->CreateEpDevice(self, devices[i], nullptr, nullptr, &to[(*found)++]));
    });
  }

  static OrtStatus* create(OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                           const OrtSessionOptions* session, const OrtLogger* logger, OrtEp** to) noexcept {
    *to = nullptr;
    return guarded([&] { *to = std::make_unique<provider>(session, logger, nullptr).release(); });
  }
};

struct pairs_release {
  void operator()(OrtKeyValuePairs* pairs) const { runtime().api->ReleaseKeyValuePairs(pairs); }
};

// A device for each GPU, which its metadata name: {"device": "cuda:0"}.
class gpu_factory : public factory {
 public:
  gpu_factory() {
    GetName = [](const OrtEpFactory*) noexcept -> const char* { return gpu_provider_name; };
    GetSupportedDevices = find_devices;
    CreateEp = create;
    CreateAllocator = [](OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                         OrtAllocator** to) noexcept -> OrtStatus* {
      *to = nullptr;
      return guarded([&] {
        for (const auto& g : static_cast<gpu_factory*>(self)->gpus())
          if (info && runtime().ep->MemoryDevice_AreEqual(runtime().ep->MemoryInfo_GetMemoryDevice(info),
                                                          runtime().ep->MemoryInfo_GetMemoryDevice(g->memory())))
            *to = make_allocator(g);
      });
    };
    CreateDataTransfer = [](OrtEpFactory* self, OrtDataTransferImpl** to) noexcept -> OrtStatus* {
      *to = nullptr;
      return guarded([&] {
        if (const gpu_list& all = static_cast<gpu_factory*>(self)->gpus(); !all.empty()) *to = make_copies(all);
      });
    };
  }

 private:
  // Looking for GPUs initializes their drivers.
  const gpu_list& gpus() {
    std::call_once(once_, [&] { gpus_ = find_gpus(); });
    return gpus_;
  }

  // A container may show a GPU to the driver and not to ONNX Runtime. Kiln's device then stands on the processor's.
  static OrtStatus* find_devices(OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count,
                                 OrtEpDevice** to, size_t most, size_t* found) noexcept {
    *found = 0;
    return guarded([&] {
      std::map<std::uint32_t, int> seen;  // GPUs, by their vendor
      std::map<std::pair<std::uint32_t, int>, const OrtHardwareDevice*> known;
      const OrtHardwareDevice* processor = nullptr;
      for (size_t i = 0; i < count; ++i) {
        const OrtHardwareDevice* const d = devices[i];
        const std::uint32_t vendor = runtime().api->HardwareDevice_VendorId(d);
        if (runtime().api->HardwareDevice_Type(d) == OrtHardwareDeviceType_GPU) known[{vendor, seen[vendor]++}] = d;
        else if (runtime().api->HardwareDevice_Type(d) == OrtHardwareDeviceType_CPU) processor = d;
      }
      for (const auto& g : static_cast<gpu_factory*>(self)->gpus()) {
        const auto hardware = known.find({g->vendor(), g->ordinal()});
        const OrtHardwareDevice* const on = hardware == known.end() ? processor : hardware->second;
        if (*found == most || !on) break;
        OrtKeyValuePairs* made = nullptr;
        runtime().api->CreateKeyValuePairs(&made);
        const std::unique_ptr<OrtKeyValuePairs, pairs_release> metadata(made);
        runtime().api->AddKeyValuePair(made, "device", g->name().c_str());
        OrtEpDevice*& device = to[*found];
        require(runtime().ep->CreateEpDevice(self, on, made, nullptr, &device));
        ++*found;
        require(runtime().ep->EpDevice_AddAllocatorInfo(device, g->memory()));
      }
    });
  }

  static OrtStatus* create(OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const* metadata,
                           size_t count, const OrtSessionOptions* session, const OrtLogger* logger,
                           OrtEp** to) noexcept {
    *to = nullptr;
    return guarded([&] {
      if (count != 1) throw failure(ORT_INVALID_ARGUMENT, "kiln: give one GPU to a session, not several");
      const char* const name = runtime().api->GetKeyValue(metadata[0], "device");
      for (const auto& g : static_cast<gpu_factory*>(self)->gpus())
        if (name && g->name() == name) *to = std::make_unique<provider>(session, logger, g).release();
      if (!*to) throw failure(ORT_INVALID_ARGUMENT, "kiln: this GPU is not one that it has found");
    });
  }

  std::once_flag once_;
  gpu_list gpus_;
};

}  // namespace
}  // namespace kiln::ort

#define KILN_EXPORTED extern "C" __attribute__((visibility("default")))

KILN_EXPORTED OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger*,
                                           OrtEpFactory** factories, size_t most, size_t* count) {
  using namespace kiln::ort;
  *count = 0;
  // Without the interface there is no function that makes an error.
  runtime().api = base->GetApi(api_version);
  if (!runtime().api) return nullptr;
  runtime().ep = runtime().api->GetEpApi();
  int major = 0, minor = 0;
  if (std::sscanf(base->GetVersionString(), "%d.%d", &major, &minor) == 2)
    runtime().fused_nodes_take_captured = major > 1 || minor >= 27;
  return guarded([&] {
    if (most < 2) throw failure(ORT_INVALID_ARGUMENT, "kiln: there is no room for its execution providers");
    auto host = std::make_unique<host_factory>();
    factories[1] = std::make_unique<gpu_factory>().release();
    factories[0] = host.release();
    *count = 2;
  });
}

KILN_EXPORTED OrtStatus* ReleaseEpFactory(OrtEpFactory* made) {
  delete static_cast<kiln::ort::factory*>(made);
  return nullptr;
}
