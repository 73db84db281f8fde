// The drivers' functions for devices, contexts and peers.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine.hpp"
#include "entry.hpp"

namespace kiln::stand_in {

int driver_version() {
#if defined(KILN_STAND_IN_CUDA)
  constexpr int built_as = 12080;
#elif defined(KILN_STAND_IN_HIP5)
  constexpr int built_as = 50722804;
#else
  constexpr int built_as = 60342134;
#endif
  const int wanted = the_engine().version;
  return wanted ? wanted : built_as;
}

}  // namespace kiln::stand_in

using namespace kiln::stand_in;

namespace {

engine& e = the_engine();

// The name that the devices report. KILN_STAND_IN_ARCHITECTURE is for tests of devices that nobody has.
std::string architecture(const char* usual) {
  const char* wanted = std::getenv("KILN_STAND_IN_ARCHITECTURE");
  return wanted ? wanted : usual;
}

// The devices that the environment leaves: HIP_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES is a list of numbers, which ends
// for the drivers at the first one that is not a device. They are numbered from 0 in the order of the list.
std::vector<int> visible_devices() {
  std::vector<int> all;
  for (int i = 0; i < e.device_count; ++i) all.push_back(i);
  const char* list =
      std::getenv(std::string_view(NAME(cuInit, hipInit)) == "cuInit" ? "CUDA_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES");
  if (!list) return all;
  std::vector<int> visible;
  for (const char* at = list; *at;) {
    char* end = nullptr;
    const long number = std::strtol(at, &end, 10);
    if (end == at || number < 0 || number >= e.device_count) break;
    visible.push_back(static_cast<int>(number));
    at = *end == ',' ? end + 1 : end;
  }
  return visible;
}

int change_peer(int peer, bool allow) {
  const std::pair<int, int> pair{engine::current, peer};
  if (peer < 0 || peer >= std::ssize(visible_devices()) || peer == engine::current) return 101;
  if (e.peers.contains(pair) == allow) return allow ? 704 : 705;  // is so already
  allow ? void(e.peers.insert(pair)) : void(e.peers.erase(pair));
  return ok;
}

}  // namespace

EXPORT int ENTRY(cuInit, hipInit)(unsigned) {
  return e.call(NAME(cuInit, hipInit), [] { return ok; });
}
EXPORT int ENTRY(cuDriverGetVersion, hipDriverGetVersion)(int* version) {
  return e.call(NAME(cuDriverGetVersion, hipDriverGetVersion), [&] { return *version = driver_version(), ok; });
}
EXPORT int ENTRY(cuDeviceGetCount, hipGetDeviceCount)(int* count) {
  return e.call(NAME(cuDeviceGetCount, hipGetDeviceCount),
                [&] { return *count = static_cast<int>(visible_devices().size()), ok; });
}
EXPORT int ENTRY(cuDeviceGet, hipDeviceGet)(int* device, int index) {
  return e.call(NAME(cuDeviceGet, hipDeviceGet),
                [&] { return *device = index, index < std::ssize(visible_devices()) ? ok : 101; });
}
EXPORT int ENTRY(cuDeviceGetName, hipDeviceGetName)(char* name, int bytes, int device) {
  return e.call(NAME(cuDeviceGetName, hipDeviceGetName), [&] {
    const std::vector<int> visible = visible_devices();
    return std::snprintf(name, static_cast<std::size_t>(bytes), "Stand-in %d",
                         visible.at(static_cast<std::size_t>(device))),
           ok;
  });
}
EXPORT int ENTRY(cuDeviceTotalMem_v2, hipDeviceTotalMem)(std::size_t* bytes, int) {
  return e.call(NAME(cuDeviceTotalMem_v2, hipDeviceTotalMem), [&] { return *bytes = std::size_t{1} << 36, ok; });
}
EXPORT int ENTRY(cuDeviceGetAttribute, hipDeviceGetAttribute)(int* value, int attribute, int) {
  return e.call(NAME(cuDeviceGetAttribute, hipDeviceGetAttribute), [&] {
#ifdef KILN_STAND_IN_CUDA
    const std::string number = architecture("sm_90").substr(3);
    const std::array<std::pair<int, int>, 4> values{
        {{16, 132}, {75, std::stoi(number.substr(0, number.size() - 1))}, {76, number.back() - '0'}, {115, 1}}};
#else
    constexpr std::array<std::pair<int, int>, 2> values{{{63, 304}, {88, 1}}};
#endif
    for (auto [which, answer] : values)
      if (which == attribute) return *value = answer, ok;
    return invalid_value;
  });
}

#ifdef KILN_STAND_IN_CUDA

namespace {
std::array<char, 64> contexts;
}

EXPORT int cuGetErrorName(int status, const char** name) {
  static thread_local char text[64];
  std::snprintf(text, sizeof text, "CUDA_ERROR_STAND_IN_%d", status);
  *name = text;
  return ok;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  return e.call("cuDevicePrimaryCtxRetain",
                [&] { return *context = &contexts[static_cast<std::size_t>(device)], ++e.contexts, ok; });
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int) {
  return e.call("cuDevicePrimaryCtxRelease_v2", [] { return --e.contexts, ok; }, true);
}
EXPORT int cuCtxGetCurrent(void** context) {
  return e.call("cuCtxGetCurrent", [&] {
    return *context = engine::current == engine::none ? nullptr : &contexts[static_cast<std::size_t>(engine::current)],
           ok;
  });
}
EXPORT int cuCtxSetCurrent(void* context) {
  return e.call("cuCtxSetCurrent", [&] {
    return engine::current = context ? static_cast<int>(static_cast<char*>(context) - contexts.data()) : engine::none,
           ok;
  });
}
EXPORT int cuCtxEnablePeerAccess(void* context, unsigned) {
  return e.call("cuCtxEnablePeerAccess",
                [&] { return change_peer(static_cast<int>(static_cast<char*>(context) - contexts.data()), true); });
}
EXPORT int cuCtxDisablePeerAccess(void* context) {
  return e.call("cuCtxDisablePeerAccess",
                [&] { return change_peer(static_cast<int>(static_cast<char*>(context) - contexts.data()), false); });
}

#else

EXPORT const char* hipGetErrorName(int status) {
  static thread_local char text[64];
  std::snprintf(text, sizeof text, "hipErrorStandIn%d", status);
  return text;
}
EXPORT int hipSetDevice(int device) {
  return e.call("hipSetDevice", [&] {
    if (device < 0 || device >= std::ssize(visible_devices())) return 101;
    return engine::current = device, ok;
  });
}
EXPORT int hipGetDevice(int* device) {
  return e.call("hipGetDevice", [&] { return *device = engine::current, ok; });
}
EXPORT int hipDeviceEnablePeerAccess(int peer, unsigned) {
  return e.call("hipDeviceEnablePeerAccess", [&] { return change_peer(peer, true); });
}
EXPORT int hipDeviceDisablePeerAccess(int peer) {
  return e.call("hipDeviceDisablePeerAccess", [&] { return change_peer(peer, false); });
}
EXPORT int hipGetDeviceProperties(void* properties, int) {
  return e.call("hipGetDeviceProperties", [&] {
    return std::strcpy(static_cast<char*>(properties) + 396, architecture("gfx90a:sramecc+:xnack-").c_str()), ok;
  });
}
#ifndef KILN_STAND_IN_HIP5
EXPORT int hipGetDevicePropertiesR0600(void* properties, int) {
  return e.call("hipGetDevicePropertiesR0600", [&] {
    return std::strcpy(static_cast<char*>(properties) + 1160, architecture("gfx942:sramecc+:xnack-").c_str()), ok;
  });
}
#endif

#endif
