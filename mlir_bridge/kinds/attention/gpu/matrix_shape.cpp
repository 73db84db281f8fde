#include "mlir_bridge/kinds/attention/gpu/matrix_shape.hpp"

#include <algorithm>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/kinds/attention/gpu/key_value_blocks.hpp"
#include "mlir_bridge/kinds/attention/gpu/split_keys.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t chunk = lane_layout::chunk;

// Bytes of all keys and values, split into parts: offsets among them have 32 bits.
constexpr std::int64_t most_split_bytes = std::int64_t{1} << 31;
std::int64_t split_bytes(const attention_problem& p, const lane_layout& lanes, std::int64_t key_block) {
  return p.n.batch * p.n.key_heads * ceil_div(p.n.keys, key_block) *
         key_value_blocks::shared_bytes(p, lanes, key_block);
}

// Long workgroups of which one runs on each compute unit: parts of the keys with which the last round of workgroups
// leaves few units idle. Costs are in blocks of keys: a workgroup begins and ends, and parts are joined. If rows see a
// prefix of the keys, workgroups are of all lengths, and what counts is the longest one.
std::int64_t parts_of_whole_rounds(const kernel_emitter& e, const attention_problem& p,
                                   const matrix_attention_shape& shape, std::int64_t workgroups) {
  constexpr std::int64_t most_parts = 64, ends = 2, join = 2;
  const std::int64_t blocks = ceil_div(p.n.keys, shape.keys), units = e.target.gpu.compute_units;
  const auto cost = [&](std::int64_t parts) {
    const std::int64_t longest = ceil_div(blocks, parts), joins = parts > 1 ? join : 0;
    if (p.ends_early()) return workgroups * (blocks / 2 + ends * parts) / units + longest / 2 + joins;
    return ceil_div(workgroups * parts, units) * (longest + ends) + joins;
  };
  std::int64_t best = 1;
  for (std::int64_t parts = 2; parts <= std::min(most_parts, blocks / 2); ++parts)
    if (cost(parts) < cost(best)) best = parts;
  return best;
}

// Estimates the cycles until the last workgroup has finished. The rate of products was measured with depths 64 and 128,
// 16 heads and 4096 positions on an H200 (bench/gpu/attention.py).
double cost(const kernel_emitter& e, const attention_problem& p, const matrix_attention_shape& shape) {
  constexpr double products = 380, of_block = 300, of_workgroup = 4000, join = 5000, memory_rate = 48, row_tile = 16;
  const double rows = row_tile * static_cast<double>(shape.waves), keys = static_cast<double>(shape.keys);
  const auto workgroups = static_cast<std::int64_t>(static_cast<double>(p.rows) / rows + 0.999) * p.n.key_heads *
                          p.n.batch * shape.key_parts;
  const std::int64_t per_unit = (workgroups + e.target.gpu.compute_units - 1) / e.target.gpu.compute_units;
  const auto blocks = static_cast<double>(ceil_div(ceil_div(p.n.keys, shape.keys), shape.key_parts)) *
                      (p.ends_early() ? 0.5 : 1),
             depths = static_cast<double>(p.n.depth + p.n.value_depth);
  // Workgroups that share a compute unit hide each other's barriers.
  const double together = std::min<double>(static_cast<double>(per_unit), 16.0 / static_cast<double>(shape.waves));
  const double block =
      std::max(rows * keys * depths / products, keys * depths * 2 / memory_rate) + of_block / std::max(1.0, together);
  return static_cast<double>(per_unit) * blocks * block + of_workgroup + (shape.key_parts > 1 ? join : 0);
}

// Registers of a lane that a wave's tile needs beside addresses: queries, sums of the result, scores, weights, a block
// of keys and values on its way to shared memory, and what hides keys from rows.
std::int64_t registers_of(const kernel_emitter& e, const attention_problem& p, const lane_layout& lanes,
                          const matrix_attention_shape& shape) {
  const std::int64_t wave = e.target.gpu.wave, copies = lanes.whole_row ? lanes.lane_groups : 1, row = lanes.row_tile,
                     of_queries = shape.stored_queries ? 0 : query_chunks(p, lanes) * copies * chunk_bytes / 4,
                     of_scores = row * shape.keys / wave,
                     fetched = shape.keys * (p.n.depth + p.n.value_depth) / 2 / (shape.waves * wave),
                     of_ends = p.is_open() || p.ends_early() || p.n.keys % shape.keys ? 8 : 0;
  return of_ends + of_queries + row * p.n.value_depth / wave + of_scores + of_scores / 2 * copies + fetched;
}

// Shared memory for the queries of all rows of a workgroup.
std::int64_t stored_query_bytes(const attention_problem& p, const lane_layout& lanes, std::int64_t waves) {
  return waves * lanes.row_tile * ceil_div(p.n.depth, lanes.group_keys) * lanes.group_keys * 2;
}

// On AMD GPUs: the first of these ways to save registers with which they suffice: none, blocks of fewer keys, queries
// in shared memory, both. Leaves the shape as it is if none does.
void fit_registers(const kernel_emitter& e, const attention_problem& p, const lane_layout& lanes,
                   matrix_attention_shape& shape) {
  for (const bool stored : {false, true})
    for (std::int64_t keys = shape.keys; keys >= lanes.group_keys; keys /= 2) {
      matrix_attention_shape smaller = shape;
      smaller.keys = keys, smaller.stored_queries = stored;
      const std::int64_t bytes =
          key_value_blocks::shared_bytes(p, lanes, keys) + (stored ? stored_query_bytes(p, lanes, shape.waves) : 0);
      if (registers_of(e, p, lanes, smaller) > e.target.gpu.registers * 90 / 100 || bytes > e.target.gpu.lds_bytes)
        continue;
      shape = smaller;
      return;
    }
}

// Whether workgroups of eight waves leave no more of an AMD GPU idle than those of `waves`, over all rounds and
// counting rows that do not exist, and are enough to leave the keys undivided. A workgroup of RDNA takes two compute
// units.
bool eight_waves_fill(const kernel_emitter& e, const attention_problem& p, const lane_layout& lanes,
                      std::int64_t waves) {
  const std::int64_t units = e.target.gpu.compute_units / (e.target.gpu.wave == 32 ? 2 : 1);
  const auto workgroups = [&](std::int64_t of) {
    return ceil_div(p.rows, of * lanes.row_tile) * p.n.key_heads * p.n.batch;
  };
  const auto time = [&](std::int64_t of) { return ceil_div(workgroups(of), units) * of; };
  return workgroups(8) >= e.target.gpu.compute_units && time(8) <= time(waves);
}

}  // namespace

std::int64_t query_chunks(const attention_problem& p, const lane_layout& lanes) {
  return ceil_div(p.n.depth, lanes.group_keys) * lanes.row_parts * parts_of(p.query.type().type);
}

element_type factor_of(const kernel_emitter& e, element_type type) {
  return type == element_type::f32 && e.target.family == target_family::nvidia ? element_type::bf16 : type;
}

std::optional<matrix_attention_shape> choose_matrix_shape(const kernel_emitter& e, const attention_problem& p,
                                                          const kernel_configuration& configuration) {
  const element_type type = p.query.type().type;
  if (p.n.depth % chunk || p.n.value_depth % chunk || p.n.keys == 0) return std::nullopt;
  const matrix_instruction* unit = attention_instruction(e, factor_of(e, type));
  if (!unit) return std::nullopt;
  const lane_layout lanes(*unit, e.target.family, e.target.gpu.wave);
  matrix_attention_shape shape;
  // Use fewer keys if every lane holds the weights of all lane groups, or if f32 needs the registers.
  const std::int64_t wide = type == element_type::f32 ? 64 : 128;
  const bool few_registers = e.target.family == target_family::nvidia && p.n.depth > wide;
  // One tile of f32 rows splits its keys itself. With 64 of them at a depth of 64, 1.7 KB of registers are spilled, and
  // ptxas takes 2.1 s instead of 0.6.
  const bool splits_itself = e.target.family == target_family::nvidia && type == element_type::f32 && !p.is_open() &&
                             p.rows <= lanes.row_tile && p.n.depth > 32;
  shape.keys = lanes.whole_row || few_registers || splits_itself ? 32 : 64;
  if (key_value_blocks::shared_bytes(p, lanes, shape.keys) > e.target.gpu.lds_bytes) return std::nullopt;
  // The sums of the result and the queries of a wave stay in registers.
  if (p.n.depth > 256 || p.n.value_depth > 256) return std::nullopt;
  // Waves without rows of their own help to load the keys.
  shape.waves = p.is_open() || p.n.keys > shape.keys
                    ? 4
                    : std::clamp<std::int64_t>((p.rows + lanes.row_tile - 1) / lanes.row_tile, 1, 4);
  const bool nvidia = e.target.family == target_family::nvidia, f32 = type == element_type::f32;
  const auto bytes_of = [&](std::int64_t keys, bool whole) {
    const std::int64_t chunks = query_chunks(p, lanes);
    return key_value_blocks::shared_bytes(p, lanes, keys) +
           shape.waves * e.target.gpu.wave * (whole ? chunks / f32_parts * 2 : chunks) * chunk_bytes;
  };
  // More rows share what it takes to copy f32 keys and values.
  if (few_registers && f32 && !p.is_open() && p.rows > 8 * lanes.row_tile) {
    shape.waves = 8;
    if (bytes_of(64, true) <= e.target.gpu.lds_bytes) shape.keys = 64;
  }
  // The same on AMD GPUs, if no more units are idle then. Rows that end early would see more blocks,
  // and deep heads would spill registers.
  if (!nvidia && !f32 && p.n.depth <= 128 && !p.is_open() && !p.ends_early() &&
      eight_waves_fill(e, p, lanes, shape.waves))
    shape.waves = 8;
  shape.waves = std::clamp<std::int64_t>(choose(configuration, "waves", shape.waves), 1, 8);
  const std::int64_t keys = choose(configuration, "keys", shape.keys);
  if (keys > 0 && keys <= 128 && keys % lanes.group_keys == 0 &&
      key_value_blocks::shared_bytes(p, lanes, keys) <= e.target.gpu.lds_bytes)
    shape.keys = keys;
  constexpr std::int64_t most_query_chunks = 12;
  const std::int64_t stored =
      nvidia ? choose(configuration, "stored_queries", query_chunks(p, lanes) > most_query_chunks ? 1 : 0) : 0;
  if (stored > 0) {
    shape.whole_queries = f32;
    shape.stored_queries = bytes_of(shape.keys, shape.whole_queries) <= e.target.gpu.lds_bytes;
  }
  if (!nvidia && !f32) fit_registers(e, p, lanes, shape);
  const std::int64_t tiles = ceil_div(p.rows, shape.waves * lanes.row_tile),
                     workgroups = tiles * p.n.key_heads * p.n.batch;
  shape.split_first = f32 && e.target.gpu.async_copy && !p.is_open() &&
                      split_bytes(p, lanes, shape.keys) < most_split_bytes &&
                      choose(configuration, "split_first", tiles >= 2 ? 1 : 0) == 1;
  shape.together = std::clamp<std::int64_t>(choose(configuration, "together", few_registers && f32 ? 8 : 4), 1, 8);
  if (!p.is_open()) shape.key_parts = split_keys::worthwhile(e, configuration, p, workgroups, shape.keys);
  if (shape.split_first && shape.waves == 8 && !configuration.contains("key_parts"))
    shape.key_parts = parts_of_whole_rounds(e, p, shape, workgroups);
  return shape;
}

std::vector<candidate> matrix_attention_space(kernel_emitter& e, const attention_problem& p) {
  std::vector<candidate> result;
  const std::vector<choice> choices{
      {"waves", {1, 2, 4, 8}}, {"keys", {32, 64, 128}}, {"key_parts", {1, 2, 4, 8, 16, 32}}};
  for (const kernel_configuration& configuration : combinations(choices))
    if (auto shape = choose_matrix_shape(e, p, configuration);
        shape && shape->keys == configuration.at("keys") && shape->key_parts == configuration.at("key_parts"))
      result.push_back({configuration, cost(e, p, *shape)});
  return result;
}

}  // namespace kiln::gpu
