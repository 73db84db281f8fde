// Devices by name: "host", "hip:N", "cuda:N". Any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/gpu/driver.hpp"

namespace kiln {

struct device_options {
  unsigned threads = 0;                             // of the host; 0: every processor this process may use
  bool pinned = false;                              // a processor of its own for every worker of the host
  std::chrono::milliseconds wait_limit{0};          // of a GPU's work; 0: none
  std::string cuda_library = {}, hip_library = {};  // instead of the places where the drivers usually are
};

// Throws error{usage} for what is not a device's name, error{absent} with what was looked for when the device is not
// here.
std::unique_ptr<device> open_device(std::string_view name, const device_options& options = {});

struct device_list {
  std::vector<device_info> devices;          // the host first
  std::vector<gpu::search_result> searched;  // drivers of GPUs
  std::vector<std::string> failures;         // devices that are here and do not answer
};
device_list find_devices(const device_options& options = {});

}  // namespace kiln
