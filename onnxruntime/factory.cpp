// What ONNX Runtime calls to get the execution provider: the only functions that the library exports.
#include <memory>

#include "onnxruntime/provider.hpp"

namespace kiln::ort {

functions& runtime() {
  static functions all;
  return all;
}

namespace {

class factory : public OrtEpFactory {
 public:
  factory() : OrtEpFactory{} {
    ort_version_supported = api_version;
    GetName = [](const OrtEpFactory*) noexcept -> const char* { return provider_name; };
    GetVendor = [](const OrtEpFactory*) noexcept -> const char* { return "Kiln"; };
    GetVendorId = [](const OrtEpFactory*) noexcept -> std::uint32_t { return 0; };
    GetVersion = [](const OrtEpFactory*) noexcept -> const char* { return KILN_VERSION; };
    GetSupportedDevices = find_devices;
    CreateEp = create;
    ReleaseEp = [](OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<provider*>(ep); };
    // Tensors are in the memory of the host. ONNX Runtime calls these nevertheless.
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                         OrtAllocator** to) noexcept -> OrtStatus* {
      *to = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** to) noexcept -> OrtStatus* {
      *to = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
    CreateSyncStreamForDevice = [](OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                   OrtSyncStreamImpl** to) noexcept -> OrtStatus* {
      *to = nullptr;
      return nullptr;
    };
  }

 private:
  // The option `device` says on what Kiln runs; to ONNX Runtime it is a provider for the CPU, where the tensors are.
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
    return guarded([&] { *to = std::make_unique<provider>(session, logger).release(); });
  }
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
  return guarded([&] {
    if (most < 1) throw failure(ORT_INVALID_ARGUMENT, "kiln: there is no room for its execution provider");
    factories[0] = std::make_unique<factory>().release();
    *count = 1;
  });
}

KILN_EXPORTED OrtStatus* ReleaseEpFactory(OrtEpFactory* made) {
  delete static_cast<kiln::ort::factory*>(made);
  return nullptr;
}
