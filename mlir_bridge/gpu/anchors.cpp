#include "mlir_bridge/gpu/anchors.hpp"

#include <algorithm>
#include <array>

#include "mlir_bridge/gpu/attention/attention.hpp"
#include "mlir_bridge/gpu/contraction/generators.hpp"
#include "mlir_bridge/gpu/rows.hpp"

namespace kiln::gpu {

const generator_row* find_generator(std::string_view operation) {
  static constexpr auto table = std::to_array<generator_row>({
      {"dot", emit_dot},
      {"convolution", emit_convolution},
      {"transposed_convolution", emit_transposed_convolution},
      {"reduce", emit_reduce},
      {"arg_reduce", emit_arg_reduce},
      {"softmax", emit_softmax},
      {"attention", emit_attention},
      {"normalize", emit_normalize},
      {"pooling", emit_pooling},
      {"cumulative_sum", emit_cumulative_sum},
      {"top_k", emit_top_k},
      {"scatter_elements", emit_scatter_elements},
      {"scatter_nd", emit_scatter_nd},
      {"recurrent", emit_recurrent},
  });
  auto found = std::ranges::find(table, operation, &generator_row::operation);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace kiln::gpu
