#include "session/chosen_device.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "ir/error.hpp"
#include "jit/device_targets.hpp"
#include "jit/rocm_candidate.hpp"
#include "jit/targets.hpp"
#include "runtime/devices.hpp"

namespace kiln {
namespace {

// Longer than any run; a kernel that never ends ends in an error.
constexpr std::chrono::minutes longest_wait{2};

}  // namespace

jit_options chosen_device::compiling() const {
  jit_options options{.target = target};
  if (target.family == target_family::amdgpu) options.rocm = rocm_finalizer(device->info().driver_version);
  if (driver.empty()) return options;
  options.driver = driver;
  options.second_driver = second_driver;
  options.assemble = [compiler = device.get(), tool = ptxas, name = driver, refused = second_driver,
                      say = warn](std::span<const std::byte> object) -> assembled_object {
    auto by_driver = [&](std::span<const std::byte> text) { return compiler->to_machine_code(text); };
    if (!tool) return {by_driver(object), name};
    return assemble_ptx_or(*tool, object, name, refused, by_driver, [&](const std::string& why) {
      if (say) say(why);
      else spdlog::warn(why);
    });
  };
  return options;
}

chosen_device choose_device(const std::string& device, const std::string& target, unsigned threads, bool pinned,
                            const host_allocator& allocator) {
  const device_options options{
      .threads = threads, .pinned = pinned, .wait_limit = longest_wait, .in_background = true, .allocator = allocator};
  chosen_device chosen{open_device(device, options), {}};
  const device_info& info = chosen.device->info();
  bool host = info.host_memory;
  if (target == "native") {
    device_target of = target_of(info);
    chosen.target = std::move(of.row), chosen.family = std::move(of.family), chosen.note = std::move(of.note);
  } else {
    chosen.target = find_target(target);
  }
  if (host ? !runs_here(chosen.target) : !chosen.device->runs(chosen.target.name))
    throw error(error_kind::wrong_device,
                fmt::format("{} ({}): cannot run code for target '{}'; see kiln targets",
                            host ? "this machine" : "device " + device, info.description, target));
  if (info.family == "nvidia") {
    const std::string compiler = fmt::format("cuda {} {}", info.driver_version, info.architecture);
    // ptxas compiles for the architecture that the PTX names; the driver compiles for the architecture of the device.
    if (chosen.target.name == info.target) chosen.ptxas = find_ptxas(info.driver_version);
    chosen.driver = chosen.ptxas ? compiler + " ptxas " + chosen.ptxas->version : compiler;
    if (chosen.ptxas) chosen.second_driver = compiler + ", refused by ptxas " + chosen.ptxas->version;
  }
  return chosen;
}

}  // namespace kiln
