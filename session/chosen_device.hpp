// The device that --device and --target name, opened, and what the just-in-time compiler must know about it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "jit/compile_bytecode.hpp"
#include "jit/ptxas.hpp"
#include "runtime/device.hpp"
#include "runtime/host_allocator.hpp"

namespace kiln {

struct chosen_device {
  std::unique_ptr<kiln::device> device;
  target_row target;
  std::string driver = {};                            // NVIDIA: who assembles PTX, part of cache keys; else empty
  std::string second_driver = {};                     // the same for kernels that ptxas refuses
  std::optional<ptxas_tool> ptxas = {};               // NVIDIA: the toolkit's assembler, if it is installed
  std::optional<target_row> family = {};              // a generic target whose kernels run on the device, too
  std::string note = {};                              // the warning for a device that has no row of its own; else empty
  std::function<void(const std::string&)> warn = {};  // from any thread; null: spdlog

  // With the target, and the device's driver as the last compiler where it is one.
  jit_options compiling() const;
};

// `target` "native" is what the device is, or the nearest that it runs (jit/device_targets.hpp). Throws
// error{no_driver, no_device} with what was looked for when the device is not here, or when it does not run code of
// `target`; error{unsupported} for a device for which there is no code; error{usage} for names that mean nothing.
chosen_device choose_device(const std::string& device, const std::string& target, unsigned threads = 0,
                            bool pinned = false, const host_allocator& allocator = {});

}  // namespace kiln
