// Where the payloads of a file are read and compiled: in workers, or in this process for those who made the file.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "jit/compile_worker.hpp"

namespace kiln::tools {

struct worker_choice {
  bool isolated = false, in_process = false;  // --isolated, --in-process
};
void add_worker_options(CLI::App& app, worker_choice& choice);

// For payloads of a file; null with --in-process. Throws error{usage} where the options exclude each other.
std::shared_ptr<worker_pool> workers_for_files(const worker_choice& choice);

}  // namespace kiln::tools
