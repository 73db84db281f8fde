#include "tools/native_file.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

#include "ir/container/container.hpp"
#include "ir/empty_results.hpp"
#include "ir/error.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "session/general_program.hpp"

namespace kiln::tools {

program finalize_for_all_sizes(const program& open, const jit_options& jit, jit_report& report) {
  const bool host = jit.target.family == target_family::cpu;
  ranged_kernels kernels(open, host ? processor::cpu : processor::gpu);
  report = kernels.finalize({}, jit, [](const std::string& text) { spdlog::warn("{}", text); });
  jit_report of_static;
  program native = general_program(open, kernels, jit, &of_static);
  std::ranges::move(of_static.kernels, std::back_inserter(report.kernels));
  report.hits += of_static.hits, report.misses += of_static.misses, report.elapsed_ms += of_static.elapsed_ms;
  for (const module& m : native.modules())
    for (const instruction& i : m.instructions())
      if (const auto* c = i.op().get_if<code_object>(); c && c->format != code_format::native && !gives_no_elements(i))
        throw error(error_kind::unsupported,
                    fmt::format("kernel '{}' ({}): it has no form for all sizes (kiln inspect says why); give the "
                                "dimensions values with --dim",
                                c->symbol, i.origin()));
  return native;
}

void write_native_file(const program& native, const std::string& path, const cache_choice& cache) {
  write_options writing;
  writing.dialect_version = dialect_version();
  const cache_options keys = cache_options_of(cache);
  writing.sign_with = keys.sign_with ? &*keys.sign_with : keys.consent.user ? keys.consent.user->own() : nullptr;
  if (!writing.sign_with)
    spdlog::warn("{} is not signed, and runs with --allow-unsigned-native only: {}", path,
                 keys.consent.user ? keys.consent.user->why() : "there is no folder for your key: set HOME");
  write_program(native, path, writing);
}

}  // namespace kiln::tools
