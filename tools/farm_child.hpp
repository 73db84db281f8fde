// One job of the build farm in a process of its own: `kiln --farm-job` reads a request from standard input, runs the command in the job's folder, and answers on
// standard output with nothing or an error. A crash, a hang or too much memory end the child and become an error of the caller's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "jit/child_process.hpp"
#include "jit/remote/farm_job.hpp"

namespace kiln::tools {

inline constexpr const char* farm_child_argument = "--farm-job";

// What a job of this kind runs: the command, the name of its model in the folder, the name of its result, and the options that may travel; the others name files or
// devices of the machine where they were written.
struct farm_command {
  const char* command;
  const char* model;
  const char* result;
  const char* extension;                  // of a result where it is fetched to
  std::vector<std::string> result_options;
  std::vector<std::string> allowed;
};
const farm_command& command_of(farm_kind kind);

// Throws error{usage} for what the command would not understand, and error{unsupported} naming an option that cannot travel.
void check_farm_options(farm_kind kind, const std::vector<std::string>& options);

// Does the job and returns its result's path. Throws what the command throws; error{compile_failed} for a child that crashed, error{timed_out}.
std::filesystem::path perform_in_child(const farm_job& job, const std::filesystem::path& folder, const child_limits& limits);

// The child's main function: the exit status.
int run_farm_child();

}  // namespace kiln::tools
