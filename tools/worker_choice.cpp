#include "tools/worker_choice.hpp"

#include "ir/error.hpp"

namespace kiln::tools {

void add_worker_options(CLI::App& app, worker_choice& choice) {
  app.add_flag("--isolated", choice.isolated,
               "Compile each kernel in a separate process, instead of several kernels one after another");
  app.add_flag(
      "--in-process", choice.in_process,
      "Read and compile kernels in this process: only for files that you made yourself, because a damaged one can "
      "crash it");
}

compile_place compile_place_of(const worker_choice& choice) {
  if (choice.isolated && choice.in_process)
    throw error(error_kind::usage, "--isolated and --in-process exclude each other");
  return choice.in_process ? compile_place::this_process
         : choice.isolated ? compile_place::isolated_workers
                           : compile_place::workers;
}

std::shared_ptr<worker_pool> workers_for_files(const worker_choice& choice) {
  return workers_at(compile_place_of(choice));
}

}  // namespace kiln::tools
