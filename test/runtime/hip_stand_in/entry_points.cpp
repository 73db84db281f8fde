// The drivers' functions, implemented with the engine. The build determines which driver's names they have.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "engine.hpp"
#include "entry.hpp"
#include "runtime/gpu/driver_functions.hpp"

using namespace kiln::stand_in;

namespace {

engine& e = the_engine();

constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";

void* biased(void* real) { return reinterpret_cast<void*>(reinterpret_cast<std::size_t>(real) + device_bias); }
char* unbiased(void* device) { return reinterpret_cast<char*>(reinterpret_cast<std::size_t>(device) - device_bias); }

// Work that is not allowed in captures.
int outside_capture(void* handle, std::function<bool()> run, bool releases = false) {
  stream_object* s = e.stream(handle);
  if (!e.alive(s)) return invalid_value;
  if (s->capture) return s->invalid = true, capture_unsupported;
  return later(handle, [run = std::move(run)](stream_object&) { return run(); }, node_object::kind::kernel, releases);
}

// The name that the devices report. KILN_STAND_IN_ARCHITECTURE is for tests of devices that nobody has.
std::string architecture(const char* usual) {
  const char* wanted = std::getenv("KILN_STAND_IN_ARCHITECTURE");
  return wanted ? wanted : usual;
}

template <class Object>
int make(std::set<Object*>& all, void** out, Object object) {
  auto* made = new Object(std::move(object));
  all.insert(made);
  *out = made;
  return ok;
}

template <class Object>
int destroy(std::set<Object*>& all, void* handle) {
  auto* object = static_cast<Object*>(handle);
  if (!all.erase(object)) return invalid_value;
  delete object;
  return ok;
}

int copy(void* to, const void* from, std::size_t bytes, void* stream, bool from_host, bool to_host) {
  if ((from_host && !e.is_pinned(from, bytes)) || (to_host && !e.is_pinned(to, bytes)))
    // Kiln always stages copies.
    return invalid_value;
  return later(stream, copy_work(to, from, bytes, from_host, to_host), node_object::kind::copy);
}

int driver_version() {
#if defined(KILN_STAND_IN_CUDA)
  constexpr int built_as = 12080;
#elif defined(KILN_STAND_IN_HIP5)
  constexpr int built_as = 50722804;
#else
  constexpr int built_as = 60342134;
#endif
  return e.version ? e.version : built_as;
}

// The entry points of the SPIR-V in a bundle, whose last entry it is.
int load_bundle(void** module, const char* image) {
  constexpr std::string_view wanted = "hip-spirv64-amd-amdhsa--amdgcnspirv";
  if (driver_version() < 60400000) return invalid_image;
  std::uint64_t entries = 0, about[3] = {};
  std::memcpy(&entries, image + bundle_magic.size(), sizeof entries);
  const char* at = image + bundle_magic.size() + sizeof entries;
  for (std::uint64_t i = 0; i < entries; ++i, at += sizeof about + about[2]) {
    std::memcpy(about, at, sizeof about);
    if (std::string_view(at + sizeof about, about[2]) != wanted) continue;
    module_object object;
    constexpr std::size_t header_words = 5, entry_point = 15;
    const auto* words = reinterpret_cast<const std::uint32_t*>(image + about[0]);
    for (std::size_t word = header_words; word < about[1] / 4; word += words[word] >> 16)
      if ((words[word] & 0xffff) == entry_point) object.names.insert(reinterpret_cast<const char*>(words + word + 3));
    return make(e.modules, module, std::move(object));
  }
  return invalid_image;
}

int load_module(void** module, const void* image) {
  if (std::strncmp(static_cast<const char*>(image), bundle_magic.data(), bundle_magic.size()) == 0)
    return load_bundle(module, static_cast<const char*>(image));
  std::string text(static_cast<const char*>(image));
  std::string_view rest = text;
  if (!rest.starts_with(module_first_line) || !rest.ends_with(module_last_line)) return invalid_image;
  rest.remove_prefix(std::strlen(module_first_line));
  rest.remove_suffix(std::strlen(module_last_line));
  module_object object;
  while (!rest.empty()) {
    auto end = rest.find('\n');
    object.names.insert(std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return make(e.modules, module, std::move(object));
}

}  // namespace

// --- devices ---

namespace {

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
thread_local void* current = nullptr;
std::array<char, 64> contexts;
}  // namespace

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
  return e.call("cuCtxGetCurrent", [&] { return *context = current, ok; });
}
EXPORT int cuCtxSetCurrent(void* context) {
  return e.call("cuCtxSetCurrent", [&] { return current = context, ok; });
}
EXPORT int cuFuncSetAttribute(void*, int attribute, int value) {
  return e.call("cuFuncSetAttribute", [&] { return attribute == 8 && value <= 227 << 10 ? ok : invalid_value; });
}
EXPORT int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  return e.call("cuModuleLoadDataEx", [&] {
    int status = load_module(module, image);
    for (unsigned i = 0; status && i < count; ++i)
      if (options[i] == 5) std::snprintf(static_cast<char*>(values[i]), 64, "line 1: not a stand-in module\n");
    return status;
  });
}
EXPORT int cuLinkCreate_v2(unsigned, int*, void**, void** state) {
  return e.call("cuLinkCreate_v2", [&] { return make(e.links, state, link_object{}); });
}
EXPORT int cuLinkAddData_v2(void* state, int type, void* data, std::size_t bytes, const char*, unsigned, int*, void**) {
  return e.call("cuLinkAddData_v2", [&] {
    static_cast<link_object*>(state)->text.assign(static_cast<char*>(data), bytes);
    return type == 1 && std::strstr(static_cast<char*>(data), module_first_line) ? ok : 218;
  });
}
EXPORT int cuLinkComplete(void* state, void** cubin, std::size_t* bytes) {
  return e.call("cuLinkComplete", [&] {
    auto& link = *static_cast<link_object*>(state);
    link.result.assign(link.text.begin() + static_cast<std::ptrdiff_t>(link.text.find(module_first_line)),
                       link.text.end());
    *cubin = link.result.data();
    *bytes = link.result.size();
    return ok;
  });
}
EXPORT int cuLinkDestroy(void* state) {
  return e.call("cuLinkDestroy", [&] { return destroy(e.links, state); }, true);
}
EXPORT int cuTensorMapEncodeTiled(void* map, int type, std::uint32_t rank, void* address, const std::uint64_t* dims,
                                  const std::uint64_t*, const std::uint32_t* box, const std::uint32_t* steps, int,
                                  int swizzle, int, int) {
  return e.call("cuTensorMapEncodeTiled", [&] {
    if (reinterpret_cast<std::size_t>(map) % 64 || reinterpret_cast<std::size_t>(address) % 16 || rank < 1 ||
        rank > 5 || dims[0] == 0 || box[0] == 0 || steps[0] != 1 || swizzle < 0 || swizzle > 3 || type < 0)
      return invalid_value;
    std::memset(map, 0, 128);
    std::memcpy(map, &address, sizeof address);
    return ok;
  });
}

#else

namespace {
thread_local int current = 0;
}

EXPORT const char* hipGetErrorName(int status) {
  static thread_local char text[64];
  std::snprintf(text, sizeof text, "hipErrorStandIn%d", status);
  return text;
}
EXPORT int hipSetDevice(int device) {
  return e.call("hipSetDevice", [&] { return current = device, device < std::ssize(visible_devices()) ? ok : 101; });
}
EXPORT int hipGetDevice(int* device) {
  return e.call("hipGetDevice", [&] { return *device = current, ok; });
}
EXPORT int hipModuleLoadData(void** module, const void* image) {
  return e.call("hipModuleLoadData", [&] { return load_module(module, image); });
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

// --- streams and events ---

EXPORT int ENTRY(cuStreamCreate, hipStreamCreateWithFlags)(void** stream, unsigned) {
  return e.call(NAME(cuStreamCreate, hipStreamCreateWithFlags),
                [&] { return make(e.streams, stream, stream_object{}); });
}
EXPORT int ENTRY(cuStreamDestroy_v2, hipStreamDestroy)(void* stream) {
  return e.call(
      NAME(cuStreamDestroy_v2, hipStreamDestroy),
      [&] {
        if (!e.streams.contains(static_cast<stream_object*>(stream))) return invalid_value;
        e.drain(*static_cast<stream_object*>(stream));
        return destroy(e.streams, stream);  // a capture goes with it
      },
      true);
}
EXPORT int ENTRY(cuStreamSynchronize, hipStreamSynchronize)(void* stream) {
  return e.call(NAME(cuStreamSynchronize, hipStreamSynchronize), [&] {
    stream_object& s = *e.stream(stream);
    if (!e.alive(&s)) return invalid_value;
    if (s.capture) return s.invalid = true, capture_unsupported;
    return e.drain(s);
  });
}
EXPORT int ENTRY(cuStreamQuery, hipStreamQuery)(void* stream) {
  return e.call(NAME(cuStreamQuery, hipStreamQuery), [&] {
    stream_object& s = *e.stream(stream);
    if (s.capture) return s.invalid = true, capture_unsupported;
    if (s.hung) return not_ready;
    if (s.work_list.empty()) return ok;
    e.step(s);
    return e.lost ? e.lost : not_ready;
  });
}
EXPORT int ENTRY(cuStreamWaitEvent, hipStreamWaitEvent)(void* stream, void* event, unsigned) {
  return e.call(NAME(cuStreamWaitEvent, hipStreamWaitEvent), [&] {
    if (!e.events.contains(static_cast<event_object*>(event))) return invalid_value;
    auto last = static_cast<event_object*>(event)->last;
    return outside_capture(stream, [last] {
      if (last && !last->done) e.finish(*last);
      return true;
    });
  });
}
EXPORT int ENTRY(cuEventCreate, hipEventCreateWithFlags)(void** event, unsigned) {
  return e.call(NAME(cuEventCreate, hipEventCreateWithFlags), [&] { return make(e.events, event, event_object{}); });
}
EXPORT int ENTRY(cuEventDestroy_v2, hipEventDestroy)(void* event) {
  return e.call(NAME(cuEventDestroy_v2, hipEventDestroy), [&] { return destroy(e.events, event); }, true);
}
EXPORT int ENTRY(cuEventRecord, hipEventRecord)(void* event, void* stream) {
  return e.call(NAME(cuEventRecord, hipEventRecord), [&] {
    if (!e.events.contains(static_cast<event_object*>(event))) return invalid_value;
    auto last = std::make_shared<moment>(moment{e.stream(stream), false, 0});
    static_cast<event_object*>(event)->last = last;
    return outside_capture(stream, [last] {
      last->done = true;
      last->milliseconds =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
      return true;
    });
  });
}
EXPORT int ENTRY(cuEventSynchronize, hipEventSynchronize)(void* event) {
  return e.call(NAME(cuEventSynchronize, hipEventSynchronize), [&] {
    if (!e.events.contains(static_cast<event_object*>(event))) return invalid_value;
    auto last = static_cast<event_object*>(event)->last;
    if (last && !last->done) e.finish(*last);
    return last && !last->done ? (e.lost ? e.lost : timed_out) : ok;
  });
}
EXPORT int ENTRY(cuEventQuery, hipEventQuery)(void* event) {
  return e.call(NAME(cuEventQuery, hipEventQuery), [&] {
    auto last = static_cast<event_object*>(event)->last;
    if (!last || last->done) return ok;
    if (!last->stream->work_list.empty() && !last->stream->hung) e.step(*last->stream);
    return e.lost ? e.lost : not_ready;
  });
}
EXPORT int ENTRY(cuEventElapsedTime, hipEventElapsedTime)(float* milliseconds, void* begin, void* end) {
  return e.call(NAME(cuEventElapsedTime, hipEventElapsedTime), [&] {
    auto first = static_cast<event_object*>(begin)->last, second = static_cast<event_object*>(end)->last;
    if (!first || !second) return invalid_value;
    if (!first->done || !second->done) return not_ready;
    *milliseconds = static_cast<float>(second->milliseconds - first->milliseconds);
    return ok;
  });
}

// --- memory ---

EXPORT int ENTRY(cuMemAlloc_v2, hipMalloc)(void** memory, std::size_t bytes) {
  return e.call(NAME(cuMemAlloc_v2, hipMalloc), [&] {
    void* real = e.allocate(e.device_memory, bytes);
    if (real) *memory = biased(real);
    return real ? ok : out_of_memory;
  });
}
EXPORT int ENTRY(cuMemFree_v2, hipFree)(void* memory) {
  return e.call(
      NAME(cuMemFree_v2, hipFree),
      [&] {
        for (stream_object* s : e.streams) e.drain(*s);  // freeing waits for the device
        return e.release(e.device_memory, unbiased(memory));
      },
      true);
}
EXPORT int ENTRY(cuMemHostAlloc, hipHostMalloc)(void** memory, std::size_t bytes, unsigned) {
  return e.call(NAME(cuMemHostAlloc, hipHostMalloc),
                [&] { return (*memory = e.allocate(e.host_memory, bytes)) ? ok : out_of_memory; });
}
EXPORT int ENTRY(cuMemFreeHost, hipHostFree)(void* memory) {
  return e.call(
      NAME(cuMemFreeHost, hipHostFree), [&] { return e.release(e.host_memory, static_cast<char*>(memory)); }, true);
}
EXPORT int ENTRY(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(void* to, const void* from, std::size_t bytes,
                                                           void* stream) {
  return e.call(NAME(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync),
                [&] { return copy(to, from, bytes, stream, true, false); });
}
EXPORT int ENTRY(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void* to, const void* from, std::size_t bytes,
                                                           void* stream) {
  return e.call(NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync),
                [&] { return copy(to, from, bytes, stream, false, true); });
}
EXPORT int ENTRY(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(void* to, const void* from, std::size_t bytes,
                                                           void* stream) {
  return e.call(NAME(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync),
                [&] { return copy(to, from, bytes, stream, false, false); });
}
EXPORT int ENTRY(cuMemsetD8Async, hipMemsetD8Async)(void* to, unsigned char value, std::size_t count, void* stream) {
  return e.call(NAME(cuMemsetD8Async, hipMemsetD8Async),
                [&] { return later(stream, fill_work(to, value, 1, count), node_object::kind::fill); });
}
EXPORT int ENTRY(cuMemsetD32Async, hipMemsetD32Async)(void* to, unsigned value, std::size_t count, void* stream) {
  return e.call(NAME(cuMemsetD32Async, hipMemsetD32Async), [&] {
    return reinterpret_cast<std::size_t>(to) % 4
               ? invalid_value
               : later(stream, fill_work(to, value, 4, count), node_object::kind::fill);
  });
}

#ifndef KILN_STAND_IN_HIP5
EXPORT int ENTRY(cuMemPoolCreate, hipMemPoolCreate)(void** pool, const void* properties) {
  return e.call(NAME(cuMemPoolCreate, hipMemPoolCreate), [&] {
    return make(e.pools, pool, pool_object{static_cast<const kiln::gpu::pool_properties*>(properties)->location_id});
  });
}
EXPORT int ENTRY(cuMemPoolDestroy, hipMemPoolDestroy)(void* pool) {
  return e.call(NAME(cuMemPoolDestroy, hipMemPoolDestroy), [&] { return destroy(e.pools, pool); }, true);
}
EXPORT int ENTRY(cuMemPoolSetAttribute, hipMemPoolSetAttribute)(void*, int attribute, void*) {
  return e.call(NAME(cuMemPoolSetAttribute, hipMemPoolSetAttribute),
                [&] { return attribute == 4 ? ok : invalid_value; });
}
EXPORT int ENTRY(cuMemPoolTrimTo, hipMemPoolTrimTo)(void*, std::size_t) {
  return e.call(NAME(cuMemPoolTrimTo, hipMemPoolTrimTo), [] { return ok; });
}
EXPORT int ENTRY(cuMemAllocFromPoolAsync, hipMallocFromPoolAsync)(void** memory, std::size_t bytes, void* pool,
                                                                  void* stream) {
  return e.call(NAME(cuMemAllocFromPoolAsync, hipMallocFromPoolAsync), [&] {
    if (!e.pools.contains(static_cast<pool_object*>(pool)) || !e.alive(e.stream(stream))) return invalid_value;
    void* real = e.allocate(e.device_memory, bytes);
    if (real) *memory = biased(real);
    return real ? ok : out_of_memory;
  });
}
EXPORT int ENTRY(cuMemFreeAsync, hipFreeAsync)(void* memory, void* stream) {
  return e.call(
      NAME(cuMemFreeAsync, hipFreeAsync),
      [&] {
        if (e.lost) return e.release(e.device_memory, unbiased(memory));
        return outside_capture(stream, [=] { return e.release(e.device_memory, unbiased(memory)) == ok; }, true);
      },
      true);
}
#endif

// --- kernels ---

EXPORT int ENTRY(cuModuleUnload, hipModuleUnload)(void* module) {
  return e.call(NAME(cuModuleUnload, hipModuleUnload), [&] { return destroy(e.modules, module); }, true);
}
EXPORT int ENTRY(cuModuleGetFunction, hipModuleGetFunction)(void** function, void* module, const char* name) {
  return e.call(NAME(cuModuleGetFunction, hipModuleGetFunction), [&] {
    if (!e.modules.contains(static_cast<module_object*>(module)) ||
        !static_cast<module_object*>(module)->names.contains(name))
      return not_found;
    *function = const_cast<kernel*>(find_kernel(name));
    return *function ? ok : not_found;
  });
}
EXPORT int ENTRY(cuLaunchKernel, hipModuleLaunchKernel)(void* function, unsigned grid_x, unsigned grid_y,
                                                        unsigned grid_z, unsigned block_x, unsigned block_y,
                                                        unsigned block_z, unsigned, void* stream, void** parameters,
                                                        void**) {
  return e.call(NAME(cuLaunchKernel, hipModuleLaunchKernel), [&] {
    const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
    work run;
    int status = kernel_work(function, grid, block, parameters, run);
    if (!e.stream(stream)->capture) e.launched_streams.insert(stream);
    return status ? status : later(stream, std::move(run), node_object::kind::kernel);
  });
}
