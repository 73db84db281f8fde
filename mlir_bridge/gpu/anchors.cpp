#include "mlir_bridge/gpu/anchors.hpp"

#include <algorithm>
#include <array>

#include "ir/error.hpp"
#include "mlir_bridge/codegen/empty_tensors.hpp"
#include "mlir_bridge/gpu/contraction/generators.hpp"
#include "mlir_bridge/gpu/machine.hpp"
#include "mlir_bridge/gpu/rows.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"
#include "mlir_bridge/kinds/attention/gpu/attention.hpp"

namespace kiln::gpu {

namespace {

// Offsets in bytes are unsigned numbers of 32 bits where every tensor allows it; what reaches beyond a tensor by a tile
// stays in range as well.
bool fits_32_bits(const module& cluster) {
  constexpr std::size_t most = std::size_t{1} << 31;
  for (const instruction& i : cluster.instructions())
    for (const shape& s : i.outputs())
      if (s.bytes() >= most || s.element_count() >= static_cast<std::int64_t>(most)) return false;
  return true;
}

}  // namespace

const generator_row* find_generator(std::string_view operation) {
  static constexpr auto table = std::to_array<generator_row>({
      {"", emit_map, map_choices},
      {"dot", emit_dot, dot_space},
      {"convolution", emit_convolution, convolution_space},
      {"transposed_convolution", emit_transposed_convolution, transposed_convolution_space},
      {"reduce", emit_reduce, reduce_space},
      {"arg_reduce", emit_arg_reduce, arg_reduce_space},
      {"softmax", emit_softmax, softmax_space},
      {"attention", emit_attention, attention_space},
      {"normalize", emit_normalize, normalize_space},
      {"pooling", emit_pooling, pooling_space},
      {"cumulative_sum", emit_cumulative_sum, cumulative_sum_space},
      {"top_k", emit_top_k, top_k_space},
      {"scatter_elements", emit_scatter_elements},
      {"scatter_nd", emit_scatter_nd},
      {"recurrent", emit_recurrent},
  });
  auto found = std::ranges::find(table, operation, &generator_row::operation);
  return found == table.end() ? nullptr : &*found;
}

generation begin_generation(const portable_kernel& kernel, const target_row& target,
                            const kernel_configuration& configuration) {
  mlir::MLIRContext& context = kernel.impl().context->context;
  generation g{to_cluster(kernel), mlir::ModuleOp::create(mlir::UnknownLoc::get(&context))};
  codegen::replace_empty_operands(*g.cluster);
  const instruction* anchor = find_anchor(*g.cluster, kernel.symbol());
  g.row = find_generator(anchor ? anchor->op().name() : "");
  if (!g.row)
    throw error(error_kind::unsupported,
                "target '" + target.name + "' has no generator for '" + std::string(anchor->op().name()) + "'");
  const bool wide = !fits_32_bits(*g.cluster) || g.row->wide_indices;
  g.emitter = std::make_unique<kernel_emitter>(*g.cluster, kernel.symbol(), target, configuration,
                                               gpu_machine(target.family, wide ? 64 : 32), *g.code);
  return g;
}

}  // namespace kiln::gpu
