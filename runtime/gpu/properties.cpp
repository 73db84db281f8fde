#include "runtime/gpu/properties.hpp"

#include <string.h>

#include <array>
#include <charconv>

#include "runtime/gpu/generic_targets.hpp"

namespace kiln::gpu {
namespace {

constexpr int compute_capability_major = 75, compute_capability_minor = 76;  // CU_DEVICE_ATTRIBUTE_...

// hipDeviceProp_t has two layouts. hipGetDeviceProperties fills the layout of HIP 5 in every version (792 bytes,
// gcnArchName at 396). hipGetDevicePropertiesR0600, since HIP 6, fills the new layout (1472 bytes, gcnArchName at
// 1160). No other query returns the architecture's name.
constexpr std::size_t architecture_at_5 = 396, architecture_at_6 = 1160, architecture_bytes = 256,
                      properties_bytes = 8192;

std::string hip_architecture(const gpu_driver& from, int ordinal) {
  const driver_functions& f = from.functions();
  alignas(64) std::array<char, properties_bytes> properties{};
  bool is_6 = f.properties_6 != nullptr;
  int status = is_6 ? f.properties_6(properties.data(), ordinal) : f.properties_5(properties.data(), ordinal);
  if (status)
    throw error(error_kind::device_lost,
                "device hip:" + std::to_string(ordinal) + ": its properties: " + from.error_name(status));
  const char* text = properties.data() + (is_6 ? architecture_at_6 : architecture_at_5);
  std::string architecture(text, strnlen(text, architecture_bytes));
  if (!architecture.starts_with("gfx"))
    throw error(error_kind::no_driver, "device hip:" + std::to_string(ordinal) +
                                           ": the driver calls its architecture '" + architecture +
                                           "', which is not the name of one; update the driver");
  return architecture;
}

// A CUDA target name: "sm_90a" gives 90 and 'a'. The number is 0 for any other text.
struct cuda_target {
  int number = 0;
  std::string_view features;
};
cuda_target parse(std::string_view text) {
  cuda_target result;
  if (!text.starts_with("sm_")) return result;
  text.remove_prefix(3);
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), result.number);
  if (failed != std::errc()) return {};
  result.features = text.substr(static_cast<std::size_t>(end - text.data()));
  return result;
}

}  // namespace

device_info query_info(const gpu_driver& from, int ordinal) {
  const driver_functions& f = from.functions();
  device_info info;
  info.name = std::string(name(from.which())) + ":" + std::to_string(ordinal);
  auto require = [&](int status, const char* what) {
    if (status)
      throw error(error_kind::device_lost, "device " + info.name + ": its " + what + ": " + from.error_name(status));
  };
  int device = 0;
  require(f.device_get(&device, ordinal), "number");
  std::array<char, 256> text{};
  require(f.device_name(text.data(), static_cast<int>(text.size()) - 1, device), "name");
  info.description = text.data();
  std::size_t bytes = 0;
  require(f.device_memory_bytes(&bytes, device), "memory");
  info.memory_bytes = bytes;
  auto attribute = [&](int which, const char* what) {
    int value = 0;
    require(f.device_attribute(&value, which, device), what);
    return value;
  };
  info.multiprocessors =
      static_cast<unsigned>(attribute(from.attributes().multiprocessors, "number of multiprocessors"));
  if (from.which() == api::cuda) {
    info.family = "nvidia";
    info.architecture = "sm_" + std::to_string(attribute(compute_capability_major, "compute capability")) +
                        std::to_string(attribute(compute_capability_minor, "compute capability"));
    info.target = info.architecture;
  } else {
    info.family = "amdgpu";
    info.architecture = hip_architecture(from, ordinal);
    info.target = info.architecture.substr(0, info.architecture.find(':'));
  }
  if (info.description.empty()) info.description = info.architecture;
  info.driver_version = from.version_text();
  info.host_memory = false;
  info.alignment = 256;
  return info;
}

bool runs_on(api which, std::string_view device_target, std::string_view target) {
  if (which == api::hip)
    return !target.empty() &&
           (target.substr(0, target.find(':')) == device_target || target == generic_target(device_target));
  cuda_target own = parse(device_target), wanted = parse(target);
  if (!wanted.number) return false;
  // The driver compiles PTX of an older architecture for this device. Code with architecture-specific features
  // ("sm_90a") runs only on that architecture.
  return wanted.features.empty() ? wanted.number <= own.number : wanted.number == own.number;
}

}  // namespace kiln::gpu
