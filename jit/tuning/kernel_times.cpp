#include "jit/tuning/kernel_times.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "jit/tuning/device_turns.hpp"

namespace kiln {

std::vector<double> measure_kernel_times(const executable& loaded, const jit_report& report, const io_buffers& tensors,
                                         int runs, device_turns* turns) {
  std::map<std::string, std::vector<std::size_t>> kernels;  // by native code
  for (std::size_t k = 0; k < report.kernels.size(); ++k) kernels[report.kernels[k].native].push_back(k);
  std::vector<double> kernel_times(report.kernels.size(), std::numeric_limits<double>::infinity());
  execution_context context = loaded.make_context({.policy = graph_policy::off});
  for (int run = 0; run < runs; ++run) {
    run_profile profile;
    {
      auto turn = turns ? std::optional(turns->take()) : std::nullopt;
      loaded.run_timed(context, tensors.inputs(), tensors.outputs(), profile);
    }
    std::map<std::string, double> spent;
    const auto& instructions = loaded.plan().instructions();
    for (std::size_t i = 0; i < instructions.size(); ++i)
      spent[instructions[i].payload] += static_cast<double>(profile.instructions[i].nanoseconds) / 1e6;
    for (const auto& [native, users] : kernels)
      for (std::size_t k : users)
        kernel_times[k] = std::min(kernel_times[k], spent[native] / static_cast<double>(users.size()));
  }
  return kernel_times;
}

}  // namespace kiln
