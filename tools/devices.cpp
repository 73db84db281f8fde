#include "runtime/devices.hpp"

#include <fmt/format.h>

#include "jit/sandbox.hpp"
#include "jit/targets.hpp"
#include "tools/command.hpp"

namespace kiln::tools {
namespace {

nlohmann::ordered_json describe(const device_info& info) {
  nlohmann::ordered_json row{{"name", info.name},       {"description", info.description},   {"family", info.family},
                             {"threads", info.threads}, {"memory_bytes", info.memory_bytes}, {"target", info.target}};
  if (info.host_memory) {
    target_row native = native_target();
    row["processor"] = native.processor;
    row["vector_bits"] = native.vector_bits;
  } else {
    row["architecture"] = info.architecture;
    row["multiprocessors"] = info.multiprocessors;
    row["driver_version"] = info.driver_version;
  }
  return row;
}

void print_device(const device_info& info) {
  double gigabytes = static_cast<double>(info.memory_bytes) / 1e9;
  if (!info.host_memory) {
    print("{:<8} {}, {} multiprocessors, {:.1f} GB, {}, driver {}\n", info.name, info.description, info.multiprocessors,
          gigabytes, info.architecture, info.driver_version);
    return;
  }
  target_row native = native_target();
  print("{:<8} {}, {} threads, {:.1f} GB, {} ({} bit vectors)\n", info.name, info.description, info.threads, gigabytes,
        native.processor, native.vector_bits);
}

}  // namespace

action declare_devices(CLI::App&) {
  return [](const output_options& output) {
    device_list list = find_devices();
    auto rows = nlohmann::ordered_json::array(), searched = nlohmann::ordered_json::array();
    for (const device_info& info : list.devices) rows.push_back(describe(info));
    for (const gpu::search_result& r : list.searched)
      searched.push_back({{"library", r.library}, {"found", r.found}, {"outcome", r.outcome}});
    const sandbox_state sandbox = available_sandbox();
    const nlohmann::ordered_json workers{
        {"seccomp", sandbox.seccomp}, {"landlock", sandbox.landlock}, {"missing", sandbox.missing}};
    output.print({{"devices", rows}, {"searched", searched}, {"failures", list.failures}, {"sandbox", workers}}, [&] {
      for (const device_info& info : list.devices) print_device(info);
      for (const std::string& failure : list.failures) print("{}\n", failure);
      print("searched for GPUs:\n");
      for (const gpu::search_result& r : list.searched) print("  {}: {}\n", r.library, r.outcome);
      print("sandbox of compile workers: {}\n", sandbox.describe());
    });
    return 0;
  };
}

}  // namespace kiln::tools
