// How a session opens a model. Plain data; the defaults run on the host with the user's own cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/enum_names.hpp"
#include "jit/compile_worker.hpp"
#include "runtime/host_allocator.hpp"
#include "session/cache_choice.hpp"
#include "session/events.hpp"

namespace kiln {

// Where the payloads of a file are read and compiled. Payloads are data from outside: the compiler may crash on them.
enum class compile_place : std::uint8_t {
  workers,           // processes that compile several kernels one after another
  isolated_workers,  // a process for each kernel
  this_process,      // for payloads that this process made itself
};

// Null for this_process. `executable` as of make_compile_workers().
std::shared_ptr<worker_pool> workers_at(compile_place place, const std::string& executable = {});

// Reads a model that is no `.kiln` file (an .onnx) and compiles it into a program of portable kernels. The caller
// brings it, because a session does not know the ahead-of-time compiler.
using importer = program (*)(const std::filesystem::path& file);

// Whether kernels are compiled for the exact sizes with which a model is run.
enum class specialization : std::uint8_t {
  // The first set of sizes is compiled exactly. Later sets use kernels that serve many sizes (ranged_kernels.hpp),
  // compiled once; sets that run often get exact kernels from a thread in the background and change to them when these
  // are faster. Whatever the cache has is used without compiling, exact kernels first. With tuning: as eager.
  lazy,
  // Every kernel is compiled for each set of sizes.
  eager,
  // Kernels that serve many sizes are compiled once, the others for each set of sizes. Cannot be combined with tuning,
  // because tuning specializes kernels.
  off,
};

template <>
struct enum_table<specialization> {
  static constexpr std::array<std::string_view, 3> names{"lazy", "eager", "off"};
};

struct session_options {
  std::string device = "host";    // "host", "hip:0", "cuda:0"
  std::string target = "native";  // finalize for this target instead of the processor found
  int threads = 0;                // that run kernels on the host, and that compile; 0: all processors
  bool pinned = false;            // a processor of its own for every thread that runs kernels on the host
  host_allocator allocator = {};  // the caller's memory, for the host
  cache_choice cache = {};
  compile_place compiling = compile_place::workers;
  std::string compile_worker = {};  // executable of the workers; empty: found beside this library
  // Throw error{not_cached} instead of compiling.
  bool only_cached = false;
  // Compile cached kernels again, compare, and replace entries that differ.
  bool verify_cache = false;
  std::string record_misses =
      {};  // file to which kernels that the cache did not have are added, for `kiln warm --replay`
  graph_policy graphs = graph_policy::automatic;
  kiln::specialization specialization = specialization::lazy;
  // Inputs in whose memory runs may leave results, such as caches of keys and values (plan_options::updated_inputs).
  std::vector<std::string> updated_inputs = {};
  // Whether outputs stay in the memory of the updated inputs that they come from (plan_options::share_updated).
  bool share_updated = false;
  std::size_t most_instances = 8;             // of different sizes that are kept; at least 1
  tuning_effort tuning = tuning_effort::off;  // of run(), in the background, after the first run of an instance
  double tuning_budget_ms = 30e3;             // for each instance
  importer import = nullptr;                  // null: only `.kiln` files are opened
  session_observer observer = nullptr;
};

}  // namespace kiln
