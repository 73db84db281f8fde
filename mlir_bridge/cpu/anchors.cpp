#include "mlir_bridge/cpu/anchors.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kiln::cpu {

generator find_generator(std::string_view operation_name) {
  static constexpr auto table = std::to_array<std::pair<std::string_view, generator>>({
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
  auto found = std::ranges::find(table, operation_name, &std::pair<std::string_view, generator>::first);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace kiln::cpu
