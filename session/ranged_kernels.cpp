#include "session/ranged_kernels.hpp"

#include <algorithm>
#include <iterator>

namespace kiln {

ranged_kernels::ranged_kernels(const program& portable, processor on)
    : on_(on),
      rows_(portable),
      open_(portable, on, on == processor::cpu ? rows_.of_static_rows() : std::set<std::string>()) {
  rows_.leave_out([&](const std::string& payload) { return on == processor::gpu || open_.contains(payload); });
}

jit_report ranged_kernels::finalize(const dim_bindings& sizes, const jit_options& options,
                                    const std::function<void(const std::string&)>& warn) {
  jit_report report = rows_.finalize(sizes, options), open = open_.finalize(options, warn);
  std::ranges::move(open.kernels, std::back_inserter(report.kernels));
  report.hits += open.hits, report.misses += open.misses, report.elapsed_ms += open.elapsed_ms;
  return report;
}

void ranged_kernels::use_in(program& bound, const dim_bindings& sizes) const {
  rows_.use_in(bound, &sizes);
  open_.use_in(bound, &sizes);
}

void ranged_kernels::use_in(program& open) const {
  rows_.use_in(open, nullptr);
  open_.use_in(open, nullptr);
}

}  // namespace kiln
