// A job of the farm's queue.
#include "jit/remote/farm_job.hpp"

#include <algorithm>
#include <filesystem>

#include "fuzz_target.hpp"

namespace kiln::fuzzing {

void read_input(std::span<const std::byte> input) {
  const farm_job job = read_job(as_text(input));
  for (const farm_input& i : job.inputs) {
    const std::filesystem::path name = i.name;
    require(!name.is_absolute() && !name.empty() && std::ranges::find(name, "..") == name.end(),
            "inputs stay inside the job's folder");
  }
  require(read_job(write_job(job)) == job, "a job is written as it is read");
}

}  // namespace kiln::fuzzing
