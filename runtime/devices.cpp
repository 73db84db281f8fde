#include "runtime/devices.hpp"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <optional>

#include "runtime/gpu/properties.hpp"
#include "runtime/gpu_device.hpp"
#include "runtime/host_device.hpp"

namespace kiln {
namespace {

constexpr gpu::api apis[] = {gpu::api::hip, gpu::api::cuda};

const std::string& library(gpu::api which, const device_options& options) {
  return which == gpu::api::hip ? options.hip_library : options.cuda_library;
}

// The N of "cuda:N".
std::optional<int> number_after(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix) || name.substr(prefix.size(), 1) != ":") return std::nullopt;
  std::string_view digits = name.substr(prefix.size() + 1);
  int number = 0;
  auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc() || end != digits.data() + digits.size() || number < 0) return std::nullopt;
  return number;
}

// Returns the environment variables that may hide devices from this process, as the end of a sentence about their
// number; empty if none is set.
std::string hidden_by(gpu::api which) {
  std::string text;
  for (const char* name : which == gpu::api::hip
                              ? std::initializer_list<const char*>{"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}
                              : std::initializer_list<const char*>{"CUDA_VISIBLE_DEVICES"})
    if (const char* list = std::getenv(name)) text += std::string(", ") + name + "=" + list;
  return text;
}

}  // namespace

std::unique_ptr<device> open_device(std::string_view name, const device_options& options) {
  if (name == "host") return std::make_unique<host_device>(options.threads, options.pinned, options.allocator);
  for (gpu::api which : apis) {
    auto ordinal = number_after(gpu::name(which), name);
    if (!ordinal) continue;
    if (options.allocator.allocate)
      throw error(error_kind::usage,
                  "allocate: device '" + std::string(name) + "' has memory of its own; allocators are for the host");
    gpu::driver_search search = gpu::find_driver(which, library(which, options));
    if (!search.driver || *ordinal >= search.driver->device_count())
      throw error(search.driver ? error_kind::no_device : error_kind::no_driver,
                  "device '" + std::string(name) + "': is not available (" + gpu::explain(search) +
                      (search.driver ? hidden_by(which) : "") + "); see kiln devices for those that are");
    return std::make_unique<gpu_device>(search.driver, *ordinal, options.in_background, options.wait_limit);
  }
  throw error(error_kind::usage,
              "device '" + std::string(name) +
                  "': no device is called so; the processor is host, a GPU is cuda:0 or hip:0; see kiln devices");
}

std::size_t count_devices(std::string_view kind) {
  for (gpu::api which : apis)
    if (gpu::name(which) == kind)
      if (const gpu::driver_search search = gpu::find_driver(which, ""); search.driver)
        return static_cast<std::size_t>(search.driver->device_count());
  return 0;
}

device_list find_devices(const device_options& options) {
  device_list list;
  list.devices.push_back(host_device(options.threads).info());
  for (gpu::api which : apis) {
    gpu::driver_search search = gpu::find_driver(which, library(which, options));
    list.searched.insert(list.searched.end(), search.searched.begin(), search.searched.end());
    for (int i = 0; search.driver && i < search.driver->device_count(); ++i) {
      try {
        list.devices.push_back(gpu::query_info(*search.driver, i));
      } catch (const error& e) {
        list.failures.emplace_back(e.what());
      }
    }
  }
  return list;
}

}  // namespace kiln
