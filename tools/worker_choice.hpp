// Chooses where the payloads of a file are parsed and compiled: in workers, or in this process if the user trusts the
// file.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "session/session_options.hpp"

namespace kiln::tools {

struct worker_choice {
  bool isolated = false, in_process = false;  // --isolated, --in-process
};
void add_worker_options(CLI::App& app, worker_choice& choice);

// Where payloads of a file are compiled. Throws error{usage} if both options are given.
compile_place compile_place_of(const worker_choice& choice);
// The workers; null with --in-process.
std::shared_ptr<worker_pool> workers_for_files(const worker_choice& choice);

}  // namespace kiln::tools
