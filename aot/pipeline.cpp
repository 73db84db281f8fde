#include "aot/pipeline.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "aot/index_limits.hpp"
#include "aot/input_ranges.hpp"
#include "aot/passes/arrange_quantized_weights.hpp"
#include "aot/passes/chain_cache_updates.hpp"
#include "aot/passes/channels_last.hpp"
#include "aot/passes/common_subexpressions.hpp"
#include "aot/passes/compose_contractions.hpp"
#include "aot/passes/constant_conditions.hpp"
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/convert_precision.hpp"
#include "aot/passes/dead_code.hpp"
#include "aot/passes/float8_contractions.hpp"
#include "aot/passes/fuse_attention.hpp"
#include "aot/passes/fuse_horizontally.hpp"
#include "aot/passes/hoist_loop_invariants.hpp"
#include "aot/passes/integer_contractions.hpp"
#include "aot/passes/integer_pooling.hpp"
#include "aot/passes/merge_parallel_contractions.hpp"
#include "aot/passes/pass.hpp"
#include "aot/passes/quantize_weights.hpp"
#include "aot/passes/recognize_normalization.hpp"
#include "aot/passes/release_unchanged_values.hpp"
#include "aot/passes/restore_row_order.hpp"
#include "aot/passes/row_factors.hpp"
#include "aot/passes/separate_windows.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "aot/passes/simplify_attention.hpp"
#include "aot/passes/simplify_contractions.hpp"
#include "aot/passes/simplify_movement.hpp"
#include "aot/passes/sink_reshapes.hpp"
#include "aot/passes/sink_transposes.hpp"
#include "aot/passes/split_concats.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/error.hpp"
#include "ir/nearest_name.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln {

namespace {

// Passes that cannot be disabled, because kernel formation relies on them: kernels support only channels-last images
// and a limited number of arguments.
constexpr std::array<std::string_view, 3> needed{"channels_last", "dead_code", "split_concats"};

std::vector<pass> all_passes(folding_budget* folding, const compile_options& options) {
  rewrite_log* log = options.log;
  auto disabled = [&](std::string_view name) {
    return std::ranges::find(options.disabled, name) != options.disabled.end();
  };
  auto enabled = [&](std::vector<pass> passes) {
    std::erase_if(passes, [&](const pass& each) { return disabled(each.name()); });
    return passes;
  };
  auto simplify = [&](std::string label) {
    return until_stable{std::move(label),
                        enabled({constant_folding{.budget = folding}, constant_conditions{}, simplify_arithmetic{log},
                                 simplify_movement{log}, simplify_contractions{log}, simplify_attention{log},
                                 common_subexpressions{}})};
  };
  std::vector<pass> passes{
      dead_code{},
      integer_contractions{log},
      float8_contractions{log},
      integer_pooling{log},
      separate_windows{log},
      arrange_quantized_weights{},
      chain_cache_updates{log},
      simplify("simplify"),
      release_unchanged_values{log},
      hoist_loop_invariants{log},
      recognize_normalization{log},
      fuse_attention{log},
      sink_reshapes{log},
      simplify("simplify_reshaped"),
      // The biases of a composition must be merged into one before the next contraction can absorb it.
      until_stable{"compose", enabled({merge_parallel_contractions{log}, compose_contractions{log},
                                       constant_folding{.budget = folding}, simplify_arithmetic{log}})},
      fuse_horizontally{log},
      channels_last{},
      sink_transposes{},
      simplify("simplify_channels_last"),
      sink_reshapes{log},
      sink_transposes{.ties = false},
      simplify("simplify_again"),
      with_cleanup{restore_row_order{},
                   enabled({simplify("simplify_rows"), sink_transposes{.ties = false}, simplify("simplify_rows")})},
  };
  if (options.precision) {
    passes.push_back(convert_precision{*options.precision});
    passes.push_back(simplify("simplify_converted"));
  }
  passes.push_back(row_factors{log});
  if (options.int4_weights) passes.push_back(quantize_weights{options.quantized});
  passes.push_back(split_concats{});
  passes.push_back(dead_code{});
  return enabled(std::move(passes));
}

}  // namespace

std::vector<std::string> disableable_passes() {
  std::set<std::string> names;
  compile_options everything;
  everything.precision = element_type::f16;
  everything.int4_weights = true;
  for (const pass& each : all_passes(nullptr, everything)) {
    names.insert(each.name());
    names.insert(each.inner().begin(), each.inner().end());
  }
  for (std::string_view name : needed) names.erase(std::string(name));
  return {names.begin(), names.end()};
}

void check_disabled_passes(std::span<const std::string> disabled) {
  const std::vector<std::string> names = disableable_passes();
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& name : disabled)
    if (std::ranges::find(known, name) == known.end())
      throw error(error_kind::usage, "--disable-pass " + name + ": there is no such pass to disable" +
                                         did_you_mean(name, known) + "; `kiln compile --help` lists them");
}

void optimize(program& p, const compile_options& options) {
  check_disabled_passes(options.disabled);
  folding_budget folding(p);
  run_passes(p, all_passes(&folding, options), options.dump_dir);
}

program compile(program imported, const compile_options& options, std::vector<formed_kernel>* formed) {
  optimize(imported, options);
  record_input_ranges(imported);
  record_index_limits(imported);
  if (options.boundaries)
    for (module& m : imported.modules()) {
      m.erase_dead();
      const auto found = find_boundaries(m, make_partition(m));
      options.boundaries->insert(options.boundaries->end(), found.begin(), found.end());
    }
  if (options.steps) {
    *options.steps = with_caches_in_place(imported, options.caches, options.logits, options.ids);
    if (*options.steps) form_kernels(**options.steps, write_kernel);
  }
  form_kernels(imported, write_kernel, formed);
  return imported;
}

}  // namespace kiln
