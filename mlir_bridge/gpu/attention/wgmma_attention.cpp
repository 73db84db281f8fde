#include "mlir_bridge/gpu/attention/wgmma_attention.hpp"

#include <algorithm>

#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t most_grid = 65535;    // in y and z
constexpr std::int64_t state_registers = 40; // of a consumer, beside sums and weights

std::optional<wgmma_attention_tile> choose_tile(const kernel_emitter& e, const attention_problem& p) {
  const std::int64_t wanted = choose(e.configuration, "wgmma", -1);
  if (wanted == 0) return std::nullopt;
  // Blocks of keys for which 168 registers a thread are enough: drivers that compile PTX to be linked do not move registers from the copying warpgroup to the
  // others, and with spills ptxas waits for every warpgroup instruction. Where registers move, 128 keys are 3 % faster at depth 128.
  wgmma_attention_tile tile{.depth = p.n.depth, .keys = p.n.depth == 64 ? 128 : 96};
  tile.consumers = choose(e.configuration, "consumers", tile.consumers);
  tile.keys = choose(e.configuration, "keys", tile.keys);
  // Few workgroups leave most of the GPU alone: smaller ones do better.
  const std::int64_t workgroups = ceil_div(p.n.queries, tile.rows()) * p.n.heads * p.n.batch;
  if (wanted < 0 && workgroups * 4 < e.target.gpu.compute_units) return std::nullopt;
  if (tile.consumers < 2 || tile.consumers > 3 || tile.keys % 16 || tile.keys < 16 || tile.keys > 256) return std::nullopt;
  // Sums of scores and of the result, and weights of 16 bits.
  if (tile.keys / 2 + tile.depth / 2 + tile.keys / 4 + (tile.consumers == 2 ? state_registers : state_registers / 2) > tile.consumer_registers()) return std::nullopt;
  tile.stages = 4;
  while (tile.stages > 2 && tile.shared_bytes() > e.target.gpu.lds_bytes) --tile.stages;
  tile.stages = choose(e.configuration, "stages", tile.stages);
  tile.turns = choose(e.configuration, "turns", tile.turns) != 0;
  tile.bounded = choose(e.configuration, "bounded", 0) != 0;
  if (tile.stages < 2 || tile.shared_bytes() > e.target.gpu.lds_bytes) return std::nullopt;
  return tile;
}

}  // namespace

bool emit_wgmma_attention(kernel_emitter& e, const attention_problem& p) {
  if (!e.target.gpu.tensor_copy || e.target.gpu.matrix != matrix_unit::wgmma) return false;
  const element_type type = p.query.type().type;
  if (type != element_type::f16 && type != element_type::bf16) return false;
  if (p.n.depth != p.n.value_depth || (p.n.depth != 64 && p.n.depth != 128) || p.mask.producer) return false;
  // The largest product has the largest score only where the scale is positive.
  if (p.n.queries < 64 || p.n.keys < 128 || !(p.op.scale > 0)) return false;
  if (p.n.heads > most_grid || p.n.batch > most_grid || p.n.queries > most_grid * 64) return false;
  auto query = e.in_memory(p.query), key = e.in_memory(p.key), value_ = e.in_memory(p.value_);
  if (!query || !key || !value_ || query->type != type || key->type != type || value_->type != type) return false;
  auto tile = choose_tile(e, p);
  if (!tile) return false;
  write_wgmma_attention(e, p, {{*query, p.op.query_layout, p.n.queries, p.n.heads}, {*key, p.op.key_layout, p.n.keys, p.n.key_heads}, {*value_, p.op.value_layout, p.n.keys, p.n.key_heads}}, *tile);
  return true;
}

}  // namespace kiln::gpu
