// The interface of a sub-command of `kiln`. A command is a row of the table in main.cpp: its name, a summary, an
// example, and a function that declares its options and returns the action to run once they are parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/terminal.hpp"

namespace kiln::tools {

// --json, --quiet, --verbose: the same for every command.
struct output_options {
  bool json = false, quiet = false, verbose = false;
  // With --json, prints the document; otherwise calls `text`, unless --quiet.
  template <class Text>
  void print(const nlohmann::ordered_json& document, Text text) const {
    if (json) write_to(stdout, json_text(document));
    else if (!quiet) text();
  }
};

// Returns the exit code: 0, or 1 if a check that the command performs fails. All other failures are thrown
// (ir/error.hpp).
using action = std::function<int(const output_options&)>;

// How a command reacts to Ctrl-C. `at_once` and `limited`: tools/process_limits.hpp; `limited` also accepts
// --time-limit and --memory-limit. `by_itself`: it finishes what it has started (tools/interruption.hpp).
enum class stopping : std::uint8_t { at_once, limited, by_itself };

struct command {
  const char* name;
  const char* summary;
  const char* example;
  tools::stopping stopping;
  bool compiles_kernels;  // the compile workers' host is forked before it starts (compile_worker.hpp)
  action (*declare)(CLI::App& app);
};

action declare_compile(CLI::App& app);
action declare_refit(CLI::App& app);
action declare_run(CLI::App& app);
action declare_perf(CLI::App& app);
action declare_generate(CLI::App& app);
action declare_verify(CLI::App& app);
action declare_inspect(CLI::App& app);
action declare_diff(CLI::App& app);
action declare_tune(CLI::App& app);
action declare_finalize(CLI::App& app);
action declare_cache(CLI::App& app);
action declare_warm(CLI::App& app);
action declare_farm(CLI::App& app);
action declare_sign(CLI::App& app);
action declare_verify_signature(CLI::App& app);
action declare_trust(CLI::App& app);
action declare_devices(CLI::App& app);
action declare_targets(CLI::App& app);
action declare_hip(CLI::App& app);
action declare_ops(CLI::App& app);
action declare_completion(CLI::App& app);
action declare_man_pages(CLI::App& app);

}  // namespace kiln::tools
