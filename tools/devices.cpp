#include <fmt/format.h>

#include "jit/targets.hpp"
#include "runtime/host_device.hpp"
#include "tools/command.hpp"

namespace kiln::tools {

action declare_devices(CLI::App&) {
  return [](const output_options& output) {
    host_device host;
    target_row native = native_target();
    const device_info& info = host.info();
    nlohmann::ordered_json row{{"name", info.name},           {"description", info.description}, {"family", info.family}, {"threads", info.threads},
                               {"memory_bytes", info.memory_bytes}, {"processor", native.processor}, {"vector_bits", native.vector_bits}};
    output.print({{"devices", {row}}}, [&] {
      fmt::print("{:<8} {}, {} threads, {:.1f} GB, {} ({} bit vectors)\n", info.name, info.description, info.threads, static_cast<double>(info.memory_bytes) / 1e9, native.processor, native.vector_bits);
    });
    return 0;
  };
}

}  // namespace kiln::tools
