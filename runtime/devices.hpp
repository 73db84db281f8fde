// Opens devices by name: "host", "hip:N", "cuda:N". Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/gpu/driver.hpp"
#include "runtime/host_allocator.hpp"

namespace kiln {

struct device_options {
  unsigned threads = 0;                             // host: number of threads; 0: one per usable processor
  bool pinned = false;                              // host: pin each worker to its own processor
  std::chrono::milliseconds wait_limit{0};          // limit on waiting for a GPU's work; 0: none
  bool in_background = false;                       // GPU: another thread makes its context (gpu_device.hpp)
  std::string cuda_library = {}, hip_library = {};  // paths of drivers, instead of the usual places
  host_allocator allocator = {};                    // host: the caller's memory
};

// Throws error{usage} for what is not a device's name and for an allocator of another device than the host,
// error{no_driver, no_device} with what was looked for when the device is not here.
std::unique_ptr<device> open_device(std::string_view name, const device_options& options = {});

struct device_list {
  std::vector<device_info> devices;          // the host first
  std::vector<gpu::search_result> searched;  // GPU drivers that were looked for
  std::vector<std::string> failures;         // devices that are present but do not respond
};
// How many GPUs of a kind, "hip" or "cuda", are here. 0 if there is no driver, and for other kinds.
std::size_t count_devices(std::string_view kind);

device_list find_devices(const device_options& options = {});

}  // namespace kiln
