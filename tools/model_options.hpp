// The options that run, perf, tune and verify share, and what they mean to a session.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "ir/program.hpp"
#include "session/session_options.hpp"
#include "tools/command.hpp"
#include "tools/plan_weights.hpp"
#include "tools/worker_choice.hpp"

namespace kiln::tools {

void add_cache_option(CLI::App& app, cache_choice& choice);
void add_remote_option(CLI::App& app, cache_choice& choice);

struct model_options {
  std::string file, device = "host", target = "native", graph = "auto", tune = "off", tune_budget, specialize = "eager";
  std::vector<std::string> inputs, fills, dims, shapes;
  std::string inputs_dir;
  weights_choice weights;
  cache_choice cache;
  worker_choice workers;
  bool if_cached = false, verify_cache = false, pin = false;
  std::string record_misses;  // a log for `kiln warm --replay`
  int threads = 0;
  std::uint64_t seed = 0;
  std::vector<std::string> updated_inputs = {};  // no option: inputs in whose memory the outputs fed to them may stay
};
void add_model_options(CLI::App& app, model_options& options);

// NAME=VALUE texts; throws error{usage}.
std::pair<std::string, std::string> split_assignment(const std::string& text, const char* option);
// Throws error{usage} if a name is given twice with different values.
dim_bindings parse_bindings(const std::vector<std::string>& texts);
// Throws error{usage} for a name that the program does not have; the message suggests the nearest one.
void require_known_dimensions(const program& p, const dim_bindings& sizes);

// Converts the options to those of a session. Payloads of files are read in workers unless --in-process is given.
// Throws error{usage} for options that exclude each other or have no meaning.
session_options session_options_of(const model_options& options);

// --tune-budget in milliseconds; 30 s by default.
double tuning_budget_ms(const model_options& options);
// "500ms", "30s", "2m", "1h", or seconds without a unit. Throws error{usage}.
double parse_duration_ms(const std::string& text, const char* option);
tuning_effort parse_effort(const std::string& text);

}  // namespace kiln::tools
