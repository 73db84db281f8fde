#include "session/chosen_device.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "ir/error.hpp"
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
  options.assemble = [compiler = device.get(), tool = ptxas, say = warn](std::span<const std::byte> object) {
    if (tool) {
      try {
        return assemble_ptx(*tool, object);
      } catch (const error& e) {
        const std::string what = fmt::format("{}: {}; the driver compiles it", tool->executable, e.what());
        if (say) say(what);
        else spdlog::warn(what);
      }
    }
    return compiler->to_machine_code(object);
  };
  return options;
}

chosen_device choose_device(const std::string& device, const std::string& target, unsigned threads, bool pinned) {
  chosen_device chosen{open_device(device, {.threads = threads, .pinned = pinned, .wait_limit = longest_wait}), {}, {}};
  const device_info& info = chosen.device->info();
  bool host = info.host_memory;
  if (!host && target == "native" && std::ranges::find(targets(), info.target, &target_row::name) == targets().end())
    throw error(error_kind::unsupported,
                fmt::format("device {} is {}, which no target describes: see kiln targets", device, info.architecture));
  chosen.target = find_target(target == "native" ? info.target : target);
  if (host ? !runs_here(chosen.target) : !chosen.device->runs(chosen.target.name))
    throw error(error_kind::absent, fmt::format("{} ({}) cannot run code for target '{}'",
                                                host ? "this machine" : "device " + device, info.description, target));
  if (info.family == "nvidia") {
    chosen.driver = fmt::format("cuda {} {}", info.driver_version, info.architecture);
    chosen.ptxas = find_ptxas(info.driver_version);
    if (chosen.ptxas) chosen.driver += " ptxas " + chosen.ptxas->version;
  }
  return chosen;
}

}  // namespace kiln
