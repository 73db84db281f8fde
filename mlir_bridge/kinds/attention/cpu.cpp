#include <algorithm>
#include <cmath>

#include "mlir_bridge/kinds/attention/cpu/attention_emitter.hpp"
#include "mlir_bridge/kinds/attention/generators.hpp"

namespace kiln::cpu {

void emit_attention(kernel_emitter& e) { attention_emitter(e).emit(); }

std::vector<candidate> attention_space(kernel_emitter& e) {
  const attention_extents n(*e.anchor()->op().get_if<attention>(), e.anchor()->inputs()[0].type(),
                            e.anchor()->inputs()[1].type(), e.anchor()->inputs()[2].type());
  const std::int64_t rows = n.heads / n.key_heads * n.queries,
                     lanes = register_lanes(e, accumulation_type(e.anchor()->inputs()[0].type().type)),
                     registers = e.target.vector_registers;
  std::vector<candidate> result;
  if (rows <= most_direct_rows || n.keys == 0) return result;
  for (std::int64_t tile_m : {2, 3, 4, 6, 8, 12, 14})
    for (std::int64_t vectors : {1, 2, 3, 4})
      for (std::int64_t keys : {64, 128, 256, 512}) {
        if (tile_m * vectors + vectors + 1 > registers) continue;
        // Like the tile of a contraction: limited by multiply-adds or by loads. Adds the cost of key blocks that do not
        // stay in a cache, or that are short.
        const double r = static_cast<double>(tile_m), v = static_cast<double>(vectors),
                     step = std::max({r * v / 2, (r + v) / 2, 2 * v, 4.0}) + 0.5;
        result.push_back({{{"tile_m", tile_m}, {"tile_n", vectors * lanes}, {"keys", keys}},
                          step / (r * v) * (1 + 0.05 * std::abs(std::log2(static_cast<double>(keys) / most_keys)))});
      }
  return result;
}

}  // namespace kiln::cpu
