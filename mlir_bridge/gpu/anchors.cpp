#include "mlir_bridge/gpu/anchors.hpp"

#include <algorithm>
#include <array>

#include "mlir_bridge/cpu/anchors.hpp"
#include "mlir_bridge/gpu/contraction/generators.hpp"

namespace kiln::gpu {

const generator_row* find_generator(std::string_view operation) {
  // Those of cpu:: do whole results with one work item, which is a thread here.
  static constexpr auto table = std::to_array<generator_row>({
      {"dot", emit_dot},
      {"convolution", emit_convolution},
      {"transposed_convolution", emit_transposed_convolution},
      {"reduce", cpu::emit_reduce, true},
      {"arg_reduce", cpu::emit_arg_reduce, true},
      {"softmax", cpu::emit_softmax, true},
      {"normalize", cpu::emit_normalize, true},
      {"pooling", cpu::emit_pooling, true},
      {"cumulative_sum", cpu::emit_cumulative_sum, true},
      {"top_k", cpu::emit_top_k, true},
      {"scatter_elements", cpu::emit_scatter_elements, true},
      {"scatter_nd", cpu::emit_scatter_nd, true},
      {"recurrent", cpu::emit_recurrent, true},
  });
  auto found = std::ranges::find(table, operation, &generator_row::operation);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace kiln::gpu
