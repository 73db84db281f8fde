#include "jit/device_targets.hpp"

#include <fmt/format.h>

#include "ir/error.hpp"
#include "jit/fallback_target.hpp"
#include "runtime/gpu/generic_targets.hpp"

namespace kiln {

device_target target_of(const device_info& device) {
  if (device.host_memory) {
    device_target result{native_target()};
    if (result.row.triple == x86_triple && result.row.vector_bits < 256)
      result.note = fmt::format("this machine ({}) has no AVX2: it gets code for x86-64-v2", device.description);
    return result;
  }
  const bool amd = device.family == enum_name(target_family::amdgpu);
  const target_row* exact = find_row(device.target);
  const target_row* general = amd ? find_row(gpu::generic_target(device.target)) : nullptr;
  if (exact) return {*exact, general ? std::optional(*general) : std::nullopt};
  const target_row* found = fallback_row(device.target);
  if (!found)
    throw error(error_kind::unsupported,
                fmt::format("device {} is {}, which no target describes, and there is no generic code for its family: "
                            "see kiln targets",
                            device.name, device.architecture));
  return {*found, std::nullopt,
          fmt::format("device {} is {}, which no target describes: it gets code for {}", device.name,
                      device.architecture, found->name)};
}

}  // namespace kiln
