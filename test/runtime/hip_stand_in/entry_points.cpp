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
    module_object object(engine::current);
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
  module_object object(engine::current);
  while (!rest.empty()) {
    auto end = rest.find('\n');
    object.names.insert(std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return make(e.modules, module, std::move(object));
}

}  // namespace

#ifdef KILN_STAND_IN_CUDA

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

EXPORT int hipModuleLoadData(void** module, const void* image) {
  return e.call("hipModuleLoadData", [&] { return load_module(module, image); });
}

#endif

// --- streams and events ---

EXPORT int ENTRY(cuStreamCreate, hipStreamCreateWithFlags)(void** stream, unsigned) {
  return e.call(NAME(cuStreamCreate, hipStreamCreateWithFlags),
                [&] { return make(e.streams, stream, stream_object(engine::current)); });
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
    return e.lost(s.device) ? e.lost(s.device) : not_ready;
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
  return e.call(NAME(cuEventCreate, hipEventCreateWithFlags),
                [&] { return make(e.events, event, event_object(engine::current)); });
}
EXPORT int ENTRY(cuEventDestroy_v2, hipEventDestroy)(void* event) {
  return e.call(NAME(cuEventDestroy_v2, hipEventDestroy), [&] { return destroy(e.events, event); }, true);
}
EXPORT int ENTRY(cuEventRecord, hipEventRecord)(void* event, void* stream) {
  return e.call(NAME(cuEventRecord, hipEventRecord), [&] {
    if (!e.events.contains(static_cast<event_object*>(event))) return invalid_value;
    if (static_cast<event_object*>(event)->device != e.stream(stream)->device) return invalid_handle;
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
    return last && !last->done ? (e.lost(last->stream->device) ? e.lost(last->stream->device) : timed_out) : ok;
  });
}
EXPORT int ENTRY(cuEventQuery, hipEventQuery)(void* event) {
  return e.call(NAME(cuEventQuery, hipEventQuery), [&] {
    auto last = static_cast<event_object*>(event)->last;
    if (!last || last->done) return ok;
    if (!last->stream->work_list.empty() && !last->stream->hung) e.step(*last->stream);
    return e.lost(last->stream->device) ? e.lost(last->stream->device) : not_ready;
  });
}
EXPORT int ENTRY(cuEventElapsedTime, hipEventElapsedTime)(float* milliseconds, void* begin, void* end) {
  return e.call(NAME(cuEventElapsedTime, hipEventElapsedTime), [&] {
    auto first = static_cast<event_object*>(begin)->last, second = static_cast<event_object*>(end)->last;
    if (static_cast<event_object*>(begin)->device != static_cast<event_object*>(end)->device) return invalid_handle;
    if (!first || !second) return invalid_value;
    if (!first->done || !second->done) return not_ready;
    *milliseconds = static_cast<float>(second->milliseconds - first->milliseconds);
    return ok;
  });
}

// --- memory ---

EXPORT int ENTRY(cuMemAlloc_v2, hipMalloc)(void** memory, std::size_t bytes) {
  return e.call(NAME(cuMemAlloc_v2, hipMalloc), [&] {
    void* real = e.allocate(e.device_memory, bytes, engine::current);
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
                [&] { return (*memory = e.allocate(e.host_memory, bytes, engine::current)) ? ok : out_of_memory; });
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
    void* real = e.allocate(e.device_memory, bytes, static_cast<pool_object*>(pool)->device, true);
    if (real) *memory = biased(real);
    return real ? ok : out_of_memory;
  });
}
EXPORT int ENTRY(cuMemFreeAsync, hipFreeAsync)(void* memory, void* stream) {
  return e.call(
      NAME(cuMemFreeAsync, hipFreeAsync),
      [&] {
        if (e.lost(e.stream(stream)->device)) return e.release(e.device_memory, unbiased(memory));
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
    auto* of = static_cast<module_object*>(module);
    const kernel* what = find_kernel(name);
    if (!e.modules.contains(of) || !of->names.contains(name) || !what) return not_found;
    *function = &of->functions.try_emplace(name, what, of->device).first->second;
    return ok;
  });
}
EXPORT int ENTRY(cuLaunchKernel, hipModuleLaunchKernel)(void* function, unsigned grid_x, unsigned grid_y,
                                                        unsigned grid_z, unsigned block_x, unsigned block_y,
                                                        unsigned block_z, unsigned, void* stream, void** parameters,
                                                        void**) {
  return e.call(NAME(cuLaunchKernel, hipModuleLaunchKernel), [&] {
    if (static_cast<function_object*>(function)->device != e.stream(stream)->device) return invalid_handle;
    const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
    work run;
    int status = kernel_work(function, grid, block, parameters, run);
    if (!e.stream(stream)->capture) e.launched_streams.insert(stream);
    return status ? status : later(stream, std::move(run), node_object::kind::kernel);
  });
}
