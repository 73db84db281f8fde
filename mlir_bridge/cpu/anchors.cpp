#include "mlir_bridge/cpu/anchors.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/error.hpp"
#include "mlir_bridge/codegen/empty_tensors.hpp"
#include "mlir_bridge/cpu/host_machine.hpp"
#include "mlir_bridge/kernel/portable_kernel_impl.hpp"

namespace kiln::cpu {

std::vector<candidate> grain_choices(kernel_emitter& e) {
  const auto standard = static_cast<double>(e.code.on.item_operations);
  std::vector<candidate> result;
  for (std::int64_t grain : {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20})
    result.push_back({{{"grain", grain}}, std::abs(std::log2(static_cast<double>(grain) / standard))});
  return result;
}

const generator_row* find_generator(std::string_view operation) {
  static constexpr auto table = std::to_array<generator_row>({
      {"", emit_map, map_choices},
      {"dot", emit_dot, dot_space},
      {"convolution", emit_convolution, convolution_space},
      {"transposed_convolution", emit_transposed_convolution, transposed_convolution_space},
      {"reduce", emit_reduce, row_choices},
      {"arg_reduce", emit_arg_reduce, row_choices},
      {"softmax", emit_softmax, row_choices},
      {"attention", emit_attention, attention_space},
      {"normalize", emit_normalize, row_choices},
      {"pooling", emit_pooling, grain_choices},
      {"cumulative_sum", emit_cumulative_sum, grain_choices},
      {"top_k", emit_top_k, grain_choices},
      {"scatter_elements", emit_scatter_elements, grain_choices},
      {"scatter_nd", emit_scatter_nd, grain_choices},
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
  g.emitter =
      std::make_unique<kernel_emitter>(*g.cluster, kernel.symbol(), target, configuration, host_machine(), *g.code);
  const instruction* anchor = g.emitter->anchor();
  g.row = find_generator(anchor ? anchor->op().name() : "");
  if (!g.row)
    throw error(error_kind::unsupported,
                "target '" + target.name + "' has no generator for '" + std::string(anchor->op().name()) + "'");
  return g;
}

}  // namespace kiln::cpu
