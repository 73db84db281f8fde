#include "aot/pipeline.hpp"

#include "aot/input_ranges.hpp"
#include "aot/passes/arrange_int4_weights.hpp"
#include "aot/passes/channels_last.hpp"
#include "aot/passes/common_subexpressions.hpp"
#include "aot/passes/constant_conditions.hpp"
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/convert_precision.hpp"
#include "aot/passes/dead_code.hpp"
#include "aot/passes/fuse_attention.hpp"
#include "aot/passes/pass.hpp"
#include "aot/passes/quantize_weights.hpp"
#include "aot/passes/recognize_normalization.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "aot/passes/simplify_attention.hpp"
#include "aot/passes/simplify_contractions.hpp"
#include "aot/passes/simplify_movement.hpp"
#include "aot/passes/sink_reshapes.hpp"
#include "aot/passes/sink_transposes.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln {

void optimize(program& p, const compile_options& options) {
  folding_budget folding(p);
  auto simplify = [&](std::string label) {
    return until_stable{std::move(label),
                        {constant_folding{.budget = &folding}, constant_conditions{}, simplify_arithmetic{},
                         simplify_movement{}, simplify_contractions{}, simplify_attention{}, common_subexpressions{}}};
  };
  std::vector<pass> passes{
      dead_code{},
      arrange_int4_weights{},
      simplify("simplify"),
      recognize_normalization{},
      fuse_attention{},
      sink_reshapes{},
      simplify("simplify_reshaped"),
      channels_last{},
      sink_transposes{},
      simplify("simplify_channels_last"),
      sink_reshapes{},
      sink_transposes{.ties = false},
      simplify("simplify_again"),
  };
  if (options.precision) {
    passes.push_back(convert_precision{*options.precision});
    passes.push_back(simplify("simplify_converted"));
  }
  if (options.int4_weights) passes.push_back(quantize_weights{options.quantized});
  passes.push_back(dead_code{});
  run_passes(p, passes, options.dump_dir);
}

program compile(program imported, const compile_options& options, std::vector<formed_kernel>* formed) {
  optimize(imported, options);
  record_input_ranges(imported);
  form_kernels(imported, write_kernel, formed);
  return imported;
}

}  // namespace kiln
