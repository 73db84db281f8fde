#include "mlir_bridge/kinds/anchors.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "ir/error.hpp"

namespace kiln::codegen {

bool is_anchor(const operation& op) {
  static constexpr auto names = std::to_array<std::string_view>({
      "dot",
      "convolution",
      "transposed_convolution",
      "reduce",
      "arg_reduce",
      "softmax",
      "attention",
      "normalize",
      "pooling",
      "cumulative_sum",
      "top_k",
      "scatter_elements",
      "scatter_nd",
      "recurrent",
  });
  return std::ranges::find(names, op.name()) != names.end();
}

const instruction* find_anchor(const module& cluster, std::string_view symbol) {
  const instruction* anchor = nullptr;
  for (const instruction& i : cluster.instructions()) {
    if (!is_anchor(i.op())) continue;
    if (anchor)
      throw error(error_kind::internal, "kernel '" + std::string(symbol) + "' has two anchors, " +
                                            std::string(anchor->op().name()) + " and " + std::string(i.op().name()));
    anchor = &i;
  }
  return anchor;
}

}  // namespace kiln::codegen
