// Runs one job of the build farm in a separate process. `kiln --farm-job` reads a request from standard input, runs the
// command in the job's folder, and writes nothing or an error to standard output. If the child crashes, hangs or needs
// too much memory, the caller gets an error.
#pragma once

#include <filesystem>
#include <string>

#include "jit/child_process.hpp"
#include "jit/remote/farm_job.hpp"

namespace kiln::tools {

inline constexpr const char* farm_child_argument = "--farm-job";

// Runs a job that check_farm_job() has accepted and returns the path of its result. Throws what the command throws,
// error{compile_failed} if the child crashed, or error{timed_out}.
std::filesystem::path perform_in_child(const farm_job& job, const std::filesystem::path& folder,
                                       const child_limits& limits);

// The main function of the child. Returns its exit status.
int run_farm_child();

}  // namespace kiln::tools
