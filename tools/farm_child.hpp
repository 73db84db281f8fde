// One job of the build farm in a process of its own: `kiln --farm-job` reads a request from standard input, runs the
// command in the job's folder, and answers on standard output with nothing or an error. A crash, a hang or too much
// memory end the child and become an error of the caller's.
#pragma once

#include <filesystem>
#include <string>

#include "jit/child_process.hpp"
#include "jit/remote/farm_job.hpp"

namespace kiln::tools {

inline constexpr const char* farm_child_argument = "--farm-job";

// Does a job that check_farm_job() allows and returns its result's path. Throws what the command throws;
// error{compile_failed} for a child that crashed, error{timed_out}.
std::filesystem::path perform_in_child(const farm_job& job, const std::filesystem::path& folder,
                                       const child_limits& limits);

// The child's main function: the exit status.
int run_farm_child();

}  // namespace kiln::tools
