// A stand-in for a GPU driver: a shared library with the entry points that runtime/gpu uses, host memory behind them, a
// log of calls and fault injection. It is as unhelpful as a driver may be: work is done as late as possible (when a
// stream is waited for), device addresses cannot be read by the host, new memory holds rubbish, and whatever is asked
// of objects that are not alive is an error. Objects belong to the device that was current when they were made: what a
// driver refuses of the objects of several devices is refused, a kernel that uses another device's memory loses its own
// device, and a device that is lost leaves the others. A graph runs its nodes in an order that their dependencies
// allow, the last of those that may run first. Built three times from the same sources: HIP 6, HIP 5 (without memory
// pools, the newer properties and some functions of graphs), CUDA. HIP from 6.4 on takes an offload bundle of
// amdgcnspirv as a module too, whose functions are the entry points that it has. This header is what tests and the
// library share. All functions may be called from any thread.
#pragma once

#include <cstddef>

namespace kiln::stand_in {

struct control {
  void (*reset)();                         // forgets log, counts, faults and a lost device
  std::size_t (*calls)(const char* name);  // since reset; null: of all functions
  const char* (*log)();                    // one name on a line; valid until the next call
  void (*fail)(const char* name, std::size_t nth,
               int status);             // the nth call from now on fails with status; the first is 1
  void (*lose_device)(int status);      // every call fails from now on; what is released is gone all the same
  std::size_t (*live)();                // objects that were made and not released
  const char* (*live_names)();          // for messages
  std::size_t (*late_uses)();           // work that used memory which was released before it ran
  void (*abandon)();                    // forgets all objects, as the end of the process would
  void (*set_device_count)(int count);  // 2 at first
  std::size_t (*launched_streams)();    // that single kernels were given to since reset
  bool (*inside)();                     // the calling thread is in the stand-in
  void (*set_version)(int version);     // of the driver; 0, as after reset: the one that it was built as
};

// Exported by the library under this name.
inline constexpr const char* control_symbol = "kiln_stand_in_control";
using control_function = const control* (*)();

// What the stand-in takes as a module: this line, the names of functions (kernels.cpp) one on a line, and an end.
inline constexpr const char* module_first_line = "stand-in module\n";
inline constexpr const char* module_last_line = "end\n";

}  // namespace kiln::stand_in
