#include "runtime/devices.hpp"

#include <fmt/format.h>

#include "ir/error.hpp"
#include "jit/device_targets.hpp"
#include "jit/sandbox.hpp"
#include "runtime/host_features.hpp"
#include "tools/command.hpp"

namespace kiln::tools {
namespace {

// The target of a device, or why there is none.
device_target target_or_note(const device_info& info) {
  try {
    return target_of(info);
  } catch (const error& e) {
    device_target none;
    none.row.name = "none";
    none.note = e.what();
    return none;
  }
}

// The row of the table of targets that fits this machine's processor best.
std::string host_row() {
  const cpu_row* best = best_host_row();
  return best ? std::string(best->name) : "none";
}

nlohmann::ordered_json describe(const device_info& info) {
  const device_target target = target_or_note(info);
  nlohmann::ordered_json row{
      {"name", info.name},       {"description", info.description},   {"family", info.family},
      {"threads", info.threads}, {"memory_bytes", info.memory_bytes}, {"target", target.row.name}};
  row["generic_target"] = target.family ? nlohmann::ordered_json(target.family->name) : nullptr;
  row["note"] = target.note;
  if (info.host_memory) {
    row["processor"] = target.row.processor;
    row["row"] = host_row();
    row["vector_bits"] = target.row.vector_bits;
  } else {
    row["architecture"] = info.architecture;
    row["multiprocessors"] = info.multiprocessors;
    row["driver_version"] = info.driver_version;
  }
  return row;
}

void print_device(const device_info& info) {
  double gigabytes = static_cast<double>(info.memory_bytes) / 1e9;
  const device_target target = target_or_note(info);
  if (!info.host_memory) {
    print("{:<8} {}, {} multiprocessors, {:.1f} GB, {}, driver {}\n", info.name, info.description, info.multiprocessors,
          gigabytes, info.architecture, info.driver_version);
  } else {
    print("{:<8} {}, {} threads, {:.1f} GB, {}, {} ({} bit vectors)\n", info.name, info.description, info.threads,
          gigabytes, target.row.processor, host_row(), target.row.vector_bits);
  }
  if (!target.note.empty()) print("         {}\n", target.note);
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
