// What run, perf and verify share: their options, and the way from a .kiln file to a loaded executable with inputs.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "jit/cache/kernel_cache.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/tuning/tuning_records.hpp"
#include "runtime/executable.hpp"
#include "tools/chosen_device.hpp"
#include "tools/command.hpp"
#include "tools/graph_memory.hpp"
#include "tools/worker_choice.hpp"

namespace kiln::tools {

struct cache_choice {
  std::string folder;           // --cache
  std::string sign_key, trust;  // --cache-sign-key, --cache-trust
  std::string remote;           // --cache-remote
  bool disabled = false;        // --no-cache
  bool allow_unsigned = false;  // --allow-unsigned-native
};
void add_cache_option(CLI::App& app, cache_choice& choice);
void add_remote_option(CLI::App& app, cache_choice& choice);
// What the options and the environment name. Throws what signing_key::read, trusted_keys::read and parse_redis_url
// throw.
cache_options cache_options_of(const cache_choice& choice);
// Which native code may run that comes from outside, with and without a cache.
native_consent consent_of(const cache_choice& choice);
// Opens it, with the entries that the file which is run holds; null where the cache is disabled.
std::unique_ptr<kernel_cache> open_cache(const cache_choice& choice,
                                         std::shared_ptr<const embedded_entries> embedded = nullptr);
// The tuning records for a device: those in a cache's folder (none where it is empty) and its layers, and `hints` of a
// file.
std::unique_ptr<tuning_records> open_records(const std::filesystem::path& folder,
                                             std::vector<std::filesystem::path> layers, const chosen_device& chosen,
                                             std::string hints = {});

struct model_options {
  std::string file, device = "host", target = "native", graph = "auto", tune = "off", tune_budget;
  std::vector<std::string> inputs, dims;
  std::map<std::string, literal> given;  // inputs that a command already has; --input comes first
  cache_choice cache;
  worker_choice workers;
  bool if_cached = false, verify_cache = false, pin = false;
  std::string record_misses;  // a log for `kiln warm --replay`
  int threads = 0;
  std::uint64_t seed = 0;
};
void add_model_options(CLI::App& app, model_options& options);

// NAME.npy of every output of the plan into a folder, which is made if need be.
void write_outputs(const std::string& folder, const plan& of, std::span<const literal> outputs);

// NAME=VALUE texts; throws error{usage}.
std::pair<std::string, std::string> split_assignment(const std::string& text, const char* option);
dim_bindings parse_bindings(const std::vector<std::string>& texts);

// Symbols that the inputs' shapes determine. Throws error{usage} where an input contradicts the model.
dim_bindings bindings_from_inputs(const program& p, const std::map<std::string, literal>& given);

class model_session {
 public:
  // Opens options.file.
  model_session(const model_options& options, const output_options& output);
  // Takes a program in memory instead (verify), whose payloads this process made: it reads them itself, unless
  // --isolated is given.
  model_session(program portable, const model_options& options, const output_options& output);

  const program& portable() const { return portable_; }
  const program& bound() const { return bound_; }                 // portable kernels, static shapes
  const std::vector<literal>& inputs() const { return inputs_; }  // in the order of the parameters
  std::map<std::string, literal> named_inputs() const;
  const kiln::executable& executable() const { return *executable_; }
  std::vector<literal> run_once();                        // with outputs of its own; the first run's time is kept
  const graph_memory& graphs() const { return graphs_; }  // --graph, and what is known about this program
  kernel_cache* cache() const { return cache_.get(); }
  tuning_records* records() const { return records_.get(); }
  const program& native() const { return native_; }  // what the executable was loaded from
  void adopt(kiln::executable better);               // of the same program, with other kernels
  plan_options planning() const { return {.store = prepared_.get()}; }
  kiln::device& device() { return *chosen_.device; }
  jit_options compiling() const;  // as this program was compiled

  double read_ms = 0, finalize_ms = 0, load_ms = 0, first_run_ms = -1;
  jit_report report;
  graph_report graph;  // of run_once()
  // The keys that run and perf have in common.
  nlohmann::ordered_json describe() const;

 private:
  void finish(const output_options& output);
  program compile_recorded(const jit_options& jit);
  model_options options_;
  program portable_, bound_, native_;
  std::shared_ptr<const embedded_entries> embedded_;  // of the file; null where there are none
  std::shared_ptr<worker_pool> workers_;              // null: payloads are read in this process
  chosen_device chosen_;
  std::unique_ptr<kernel_cache> cache_;
  std::unique_ptr<tuning_records> records_;
  std::unique_ptr<prepared_store> prepared_;
  std::string hints_;  // of the file
  std::optional<kiln::executable> executable_;
  graph_memory graphs_;
  std::vector<literal> inputs_;
};

}  // namespace kiln::tools
