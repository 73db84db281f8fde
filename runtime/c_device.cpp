#include <mutex>
#include <string>
#include <unordered_map>

#include "runtime/c_status.hpp"
#include "runtime/devices.hpp"

using kiln::c_interface::fail;
using kiln::c_interface::guarded;

struct kiln_device {
  std::unique_ptr<kiln::device> opened;
  std::mutex mutex;                                      // guards what follows
  std::unordered_map<void*, kiln::device_memory> owned;  // by its address
};

namespace {

template <class Copy>
kiln_status copy(kiln_device* device, void* to, const void* from, std::size_t bytes, Copy&& how) {
  if (!device) return fail(KILN_USAGE, "the device is null");
  if (bytes && (!to || !from)) return fail(KILN_USAGE, "the memory to copy from or to is null");
  return guarded([&] {
    (*device->opened.*how)(to, from, bytes, nullptr);
    device->opened->synchronize();
  });
}

}  // namespace

extern "C" {

size_t kiln_device_count(const char* kind) {
  if (!kind) return 0;
  size_t count = 0;
  (void)guarded([&] { count = kiln::count_devices(kind); });
  return count;
}

kiln_status kiln_device_open(const char* name, kiln_device** device) {
  if (!name || !device) return fail(KILN_USAGE, "the name or the pointer for the device is null");
  *device = nullptr;
  return guarded([&] { *device = new kiln_device{kiln::open_device(name), {}, {}}; });
}

void kiln_device_close(kiln_device* device) { delete device; }

kiln_status kiln_device_allocate(kiln_device* device, size_t bytes, void** memory) {
  if (!device || !memory) return fail(KILN_USAGE, "the device or the pointer for the memory is null");
  *memory = nullptr;
  if (!bytes) return KILN_OK;
  return guarded([&] {
    kiln::device_memory made = device->opened->allocate(bytes);
    void* const data = made.data();
    const std::lock_guard lock(device->mutex);
    device->owned.emplace(data, std::move(made));
    *memory = data;
  });
}

kiln_status kiln_device_free(kiln_device* device, void* memory) {
  if (!device) return fail(KILN_USAGE, "the device is null");
  if (!memory) return KILN_OK;
  return guarded([&] {
    kiln::device_memory freed;  // after the lock
    const std::lock_guard lock(device->mutex);
    const auto found = device->owned.find(memory);
    if (found == device->owned.end())
      throw kiln::error(kiln::error_kind::usage, "the memory was not allocated by this device");
    freed = std::move(found->second);
    device->owned.erase(found);
  });
}

kiln_status kiln_device_upload(kiln_device* device, void* to, const void* from, size_t bytes) {
  return copy(device, to, from, bytes, &kiln::device::upload);
}

kiln_status kiln_device_download(kiln_device* device, void* to, const void* from, size_t bytes) {
  return copy(device, to, from, bytes, &kiln::device::download);
}

kiln_status kiln_device_copy(kiln_device* device, void* to, const void* from, size_t bytes) {
  return copy(device, to, from, bytes, &kiln::device::copy);
}

}  // extern "C"
