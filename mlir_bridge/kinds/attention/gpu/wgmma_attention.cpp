#include "mlir_bridge/kinds/attention/gpu/wgmma_attention.hpp"

#include <algorithm>

#include "mlir_bridge/codegen/strided_view.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/kinds/attention/gpu/row_division.hpp"

namespace kiln::gpu {

namespace {

// Limit of the grid in y and z.
constexpr std::int64_t most_grid = 65535;
// Registers of a consumer thread besides sums and weights.
constexpr std::int64_t state_registers = 40;
// Blocks of keys of a part, at least: joining parts costs as much as some blocks.
constexpr std::int64_t least_blocks = 4;

// Parts of the keys, so that few rows keep all compute units busy at once. Tiles of rows must not share a tile of
// split_keys, whose rows are those of all heads that share keys.
std::int64_t choose_key_parts(const kernel_emitter& e, const attention_problem& p, const wgmma_attention_tile& tile,
                              const kernel_configuration& configuration, std::int64_t workgroups) {
  if (p.share > 1 && p.n.queries % tile.rows() != 0) return 1;
  const std::int64_t blocks = ceil_div(p.n.keys, tile.keys);
  std::int64_t parts = std::min(e.target.gpu.compute_units / workgroups, blocks / least_blocks);
  parts = std::clamp<std::int64_t>(choose(configuration, "key_parts", parts), 1, blocks);
  // Every part has a block, unless a mask hides it.
  return ceil_div(blocks, ceil_div(blocks, parts));
}

// How many rows the tiles of a head have. Under a causal mask workgroups have very different numbers of keys anyway, so
// tiles are not made equal there: there only have to be enough of them for all compute units.
row_division choose_division(const kernel_emitter& e, const attention_problem& p,
                             const kernel_configuration& configuration) {
  if (configuration.contains("consumers")) return {.consumers = configuration.at("consumers")};
  if (p.n.depth != 64) return {};
  const std::int64_t units = e.target.gpu.compute_units, heads = p.n.heads * p.n.batch;
  if (p.ends_early()) {
    const std::int64_t workgroups = ceil_div(p.n.queries, 2 * wgmma_attention_tile::group_rows) * heads;
    return {.consumers = workgroups >= 2 * units ? 3 : 2};
  }
  row_division result = divide_rows(ceil_div(p.n.queries, wgmma_attention_tile::group_rows), heads, units);
  if (p.is_open()) result.short_tiles = 0;
  return result;
}

std::optional<wgmma_attention_tile> choose_tile(const kernel_emitter& e, const attention_problem& p,
                                                const kernel_configuration& configuration) {
  const std::int64_t wanted = choose(configuration, "wgmma", -1);
  if (wanted == 0) return std::nullopt;
  // With a producer, these block sizes need at most 168 registers per thread, or 128 with three consumers. Drivers that
  // compile PTX to be linked do not move registers from the producer warpgroup to the consumers, and if registers
  // spill, ptxas inserts a wait after every warpgroup instruction. If registers can be moved, 128 keys are 3 % faster
  // at depth 128. Depth 256 needs more registers than 168.
  wgmma_attention_tile tile{.depth = p.n.depth, .limited = p.limit.has_value()};
  const row_division division = choose_division(e, p, configuration);
  tile.consumers = division.consumers;
  tile.keys = p.n.depth == 64 ? (tile.consumers == 3 ? 112 : 128) : p.n.depth == 128 ? 96 : 80;
  tile.keys = choose(configuration, "keys", tile.keys);
  if (tile.consumers < 2 || tile.consumers > 3 || tile.keys % 16 || tile.keys < 16 || tile.keys > 256)
    return std::nullopt;
  const std::int64_t workgroups = ceil_div(p.n.queries, tile.rows()) * p.n.heads * p.n.batch;
  tile.key_parts = choose_key_parts(e, p, tile, configuration, workgroups);
  // With few workgroups most of the GPU is idle, so use smaller ones.
  if (wanted < 0 && workgroups * tile.key_parts * 4 < e.target.gpu.compute_units) return std::nullopt;
  // The producer gives its registers away, so it cannot join parts.
  tile.producer = tile.key_parts == 1 && choose(configuration, "producer", p.n.depth < 256) != 0;
  // Registers for the sums of scores and of the result, and for 16-bit weights.
  if (tile.keys / 2 + tile.depth / 2 + tile.keys / 4 + (tile.consumers == 2 ? state_registers : state_registers / 2) >
      tile.consumer_registers())
    return std::nullopt;
  if (tile.producer) tile.short_tiles = division.short_tiles, tile.short_consumers = division.short_consumers;
  tile.stages = 4;
  while (tile.stages > 2 && tile.shared_bytes() > e.target.gpu.lds_bytes) --tile.stages;
  tile.stages = choose(configuration, "stages", tile.stages);
  tile.turns = choose(configuration, "turns", tile.turns) != 0;
  tile.bounded = choose(configuration, "bounded", 0) != 0;
  if (tile.stages < 2 || tile.shared_bytes() > e.target.gpu.lds_bytes) return std::nullopt;
  return tile;
}

// Finds a tensor in memory, or some heads of a tensor whose heads are adjacent, as slices of a joined product of
// queries, keys and values are.
std::optional<wgmma_attention_operands::operand> find_operand(const kernel_emitter& e, value v, head_layout layout,
                                                              std::int64_t positions, std::int64_t heads) {
  if (auto memory = e.in_memory(v)) return wgmma_attention_operands::operand{*memory, layout, positions, heads};
  auto view = find_strided_view(e, v);
  if (!view || layout != head_layout::sequence_first || positions == 1) return std::nullopt;
  const std::vector<std::int64_t> dims = *extents_but_first(v);
  const std::size_t rank = dims.size();
  const std::int64_t depth = dims[rank - 1], row = view->strides[rank - 3], all = row / depth;
  bool fits = view->strides[rank - 1] == 1 && (heads == 1 || view->strides[rank - 2] == depth) && row % depth == 0 &&
              view->offset % depth == 0 && view->offset / depth + heads <= all;
  std::int64_t next = row * positions;
  for (std::size_t axis = rank - 3; axis-- > 0; next *= dims[axis])
    fits = fits && (dims[axis] == 1 || view->strides[axis] == next);
  if (!fits) return std::nullopt;
  return wgmma_attention_operands::operand{view->memory, layout, positions, all, view->offset / depth};
}

// Returns the problem's tensors as operands of the copy engine; nullopt if this generator does not support the target,
// a type, a layout or a size.
std::optional<wgmma_attention_operands> find_operands(const kernel_emitter& e, const attention_problem& p) {
  if (!e.target.gpu.tensor_copy || e.target.gpu.matrix != matrix_unit::wgmma) return std::nullopt;
  const element_type type = p.query.type().type;
  if (type != element_type::f16 && type != element_type::bf16) return std::nullopt;
  if (p.n.depth != p.n.value_depth || (p.n.depth != 64 && p.n.depth != 128 && p.n.depth != 256) || p.mask.producer)
    return std::nullopt;
  // The largest product gives the largest score only if the scale is positive.
  if (p.n.queries < 64 || p.n.keys < 128 || !(p.op.scale > 0)) return std::nullopt;
  if (p.n.heads > most_grid || p.n.batch > most_grid || p.n.queries > most_grid * 64) return std::nullopt;
  auto query = find_operand(e, p.query, p.op.query_layout, p.n.queries, p.n.heads),
       key = find_operand(e, p.key, p.op.key_layout, p.n.keys, p.n.key_heads),
       value_ = find_operand(e, p.value_, p.op.value_layout, p.n.keys, p.n.key_heads);
  if (!query || !key || !value_ || query->memory.type != type || key->memory.type != type ||
      value_->memory.type != type)
    return std::nullopt;
  return wgmma_attention_operands{*query, *key, *value_};
}

// Estimates the cycles until the last workgroup has finished. The cost per query and key was measured with depths 64
// and 128, 16 heads and 4096 positions on an H200 (bench/gpu/attention.py).
double cost(const kernel_emitter& e, const attention_problem& p, const wgmma_attention_tile& tile) {
  constexpr double products = 744, of_weight = 0.163, of_block = 250, of_workgroup = 4000, of_join = 4000;
  const std::int64_t workgroups = ceil_div(p.n.queries, tile.rows()) * p.n.heads * p.n.batch * tile.key_parts,
                     rounds = ceil_div(workgroups, e.target.gpu.compute_units);
  const auto blocks =
      static_cast<double>(ceil_div(ceil_div(p.n.keys, tile.keys), tile.key_parts)) * (p.ends_early() ? 0.5 : 1);
  const double pairs = static_cast<double>(tile.rows() * tile.keys),
               waiting = (tile.turns ? 1 : 1.05) * (tile.producer ? 1 : 1.08) *
                         (1 + 0.04 / static_cast<double>(tile.stages - 1));
  return static_cast<double>(rounds) *
         (blocks * (pairs * (static_cast<double>(2 * tile.depth) / products + of_weight) * waiting + of_block) +
          of_workgroup + (tile.key_parts > 1 ? of_join : 0));
}

}  // namespace

std::vector<candidate> wgmma_attention_space(kernel_emitter& e, const attention_problem& p) {
  std::vector<candidate> result;
  if (!find_operands(e, p)) return result;
  const std::vector<choice> choices{{"wgmma", {1}},
                                    {"consumers", {2, 3}},
                                    {"keys", {64, 80, 96, 112, 128, 160, 176, 192}},
                                    {"stages", {2, 3, 4}},
                                    {"turns", {0, 1}},
                                    {"producer", {0, 1}},
                                    {"key_parts", {1, 2, 4, 8}}};
  for (const kernel_configuration& configuration : combinations(choices))
    if (auto tile = choose_tile(e, p, configuration); tile && tile->producer == (configuration.at("producer") != 0) &&
                                                      tile->key_parts == configuration.at("key_parts"))
      result.push_back({configuration, cost(e, p, *tile)});
  return result;
}

bool emit_open_wgmma_attention(kernel_emitter& e, const attention_problem& problem) {
  if (!problem.queries.is_static() || !problem.keys.is_static() || !problem.heads.is_static() || problem.limit)
    return false;
  const auto operands = find_operands(e, problem);
  if (!operands) return false;
  // A batch that fills the device. With fewer workgroups, each takes as long.
  attention_problem many = problem;
  many.n.batch = e.target.gpu.compute_units;
  const auto tile = choose_tile(e, many, e.configuration);
  if (!tile || tile->key_parts > 1) return false;
  write_wgmma_attention(e, problem, *operands, *tile);
  return true;
}

bool emit_wgmma_attention(kernel_emitter& e, const attention_problem& p) {
  auto operands = find_operands(e, p);
  if (!operands) return false;
  auto tile = choose_tile(e, p, e.configuration);
  if (!tile) return false;
  write_wgmma_attention(e, p, *operands, *tile);
  return true;
}

}  // namespace kiln::gpu
