#include "mlir_bridge/gpu/contraction/narrow_product_shape.hpp"

#include <algorithm>
#include <bit>

#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t most_unroll = 4, most_together = 4;
// Upper bound on the loads of packed weights that a thread issues before it unpacks the first one.
constexpr std::int64_t most_packed_loads = 8;

std::int64_t floor_power(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

// Returns true if the steps of a wave along k, of `of_group` elements each, lie within groups of weights that share a
// scale, and enough waves have whole steps.
bool applies_scales(const contraction_problem& problem, const narrow_product_shape& shape, std::int64_t rows,
                    std::int64_t of_group) {
  constexpr std::int64_t least_waves = 4;
  const auto fits = [&](const operand& b) {
    return b.packed && b.packed->group % of_group == 0 &&
           b.packed->codes.type().type == problem.b.packed->codes.type().type;
  };
  return shape.unit && shape.unit->m == 16 && shape.unit->n == 8 && rows <= shape.unit->n && fits(problem.b) &&
         (!problem.second || fits(problem.second->b)) && problem.k.value() % (of_group * least_waves) == 0;
}

}  // namespace

std::int64_t columns_of(const contraction_problem& problem) { return (problem.n * problem.batch).value(); }

narrow_product_shape choose_product_shape(const kernel_emitter& e, const kernel_configuration& configuration,
                                          const contraction_problem& problem, std::int64_t rows, bool plain) {
  const gpu_row& row = e.target.gpu;
  const product_types types = problem.types();
  narrow_product_shape shape;
  shape.products = problem.second ? 2 : 1;
  for (const matrix_instruction* unit : find_matrix_instructions(row.matrix, types.factor, false))
    if (unit->m == 16 && !shape.unit) shape.unit = unit;
  // A matrix instruction is mostly wasted on a single row, but the kernel is waiting for the weights anyway.
  if (shape.unit) {
    shape.rows = shape.unit->m;
    shape.row_parts = shape.unit->a.parts;
    // For a single row this was measured to be no faster.
    if (shape.unit->a.part_rows > 0 && rows > 1)
      shape.row_parts = std::min(shape.row_parts, ceil_div(rows, shape.unit->a.part_rows));
    shape.columns_of_tile = shape.unit->n;
    shape.chunks = shape.unit->b.chunks;
  } else {
    shape.rows = rows;
    shape.columns_of_tile = row.wave / shape.chunks;
  }
  // The vector unit needs as many chunks of every row of A in registers.
  shape.together = std::clamp<std::int64_t>(problem.b.piece / elements_of_chunk(types.factor), 1,
                                            shape.unit ? most_together : floor_power(2 * most_together / shape.rows));
  const std::int64_t of_group = shape.chunks * shape.together * elements_of_chunk(types.factor),
                     groups = ceil_div(problem.k.value(), of_group);
  if (e.target.family == target_family::nvidia && types.factor == element_type::f16 && shape.together == most_together)
    shape.grouped = applies_scales(problem, shape, rows, of_group);
  if (shape.grouped) shape.rows = shape.unit->n, shape.columns_of_tile = shape.unit->m, shape.row_parts = 1;
  // Use as many threads as a workgroup may have, each with little work. On an H200 this is within 2 % of the best for 1
  // to 16 rows of 4096 (bench/gpu/gemm.py). With several rows, and columns for as many workgroups as there are compute
  // units, asynchronous copies take 12.0 us for 16 rows of 4096 in either layout of the weights. Without copies, one
  // column takes 12.5 or 16.3 us and two columns take 12.5 us. Where there are fewer columns, four of them with half
  // the waves and six stages are better than two: in a decoder's step, 8 rows of 2048 x 2048 take 0.8 us less, 16
  // rows 1.1 (H100, bench/README.md).
  const std::int64_t share = row.async_copy && shape.unit && rows > 1
                                 ? columns_of(problem) / (shape.columns_of_tile * row.compute_units * 9 / 10)
                                 : 1;
  const std::int64_t of_stage =
      shape.unit ? 512 * (4 * shape.products * shape.unit->b.parts + shape.row_parts) * chunk_bytes : 1;
  const bool copies = plain && share >= 2 && row.lds_bytes / of_stage >= 3, halves = copies && share < 4;
  const std::int64_t ahead =
      copies ? std::min<std::int64_t>(row.lds_bytes / of_stage * (halves ? 2 : 1), halves ? 6 : 4) : 0;
  // Packed weights use two columns and half the threads. Two workgroups then request everything that their compute unit
  // reads at a time. If there is one for each unit only, it has all threads.
  const bool packed = shape.together > 1;
  // On AMD GPUs the rows are read again for each tile of columns, so a workgroup of several rows takes as many tiles as
  // leave one workgroup for each compute unit.
  const std::int64_t for_each_unit = ceil_div(columns_of(problem), shape.columns_of_tile * row.compute_units);
  const bool reads_rows_again = e.target.family == target_family::amdgpu && shape.unit && rows > 1;
  // Codes whose scales multiply the sums of their group have two columns where workgroups of one would need several
  // rounds: gate and up of one row (2 x 2048 x 8192) take 7.7 instead of 10.9 us (H200, bench/README.md). Deep ones
  // have two where almost each unit then has one workgroup of all threads: one and eight rows of 4096 x 4096 take 4.5
  // and 5.3 us instead of 4.9 and 5.8.
  constexpr std::int64_t least_groups = 32;
  const std::int64_t pairs = columns_of(problem) / (shape.columns_of_tile * 2),
                     rounds = ceil_div(columns_of(problem), shape.columns_of_tile * 2 * row.compute_units);
  const bool fills_units = groups >= least_groups && pairs * 10 >= row.compute_units * 9;
  const std::int64_t columns = shape.grouped      ? rounds > 1 || fills_units ? 2 : 1
                               : packed           ? std::min<std::int64_t>(for_each_unit, 2)
                               : reads_rows_again ? std::min<std::int64_t>(for_each_unit, 4)
                               : ahead            ? 4
                                                  : std::min<std::int64_t>(share, 2);
  shape.tiles = std::clamp<std::int64_t>(choose(configuration, "narrow_columns", columns), 1, 8);
  const bool one_each = e.target.family == target_family::nvidia && groups >= least_groups &&
                        ceil_div(columns_of(problem), shape.columns()) <= row.compute_units;
  shape.waves =
      choose(configuration, "narrow_waves",
             std::min<std::int64_t>(((packed && !one_each) || halves ? 256 : 512) / row.wave, floor_power(groups)));
  // Every wave stores its sums to shared memory.
  const std::int64_t most_waves =
      std::min<std::int64_t>(512 / row.wave, row.lds_bytes / (shape.rows * shape.pitch() * 4));
  shape.waves = std::clamp<std::int64_t>(shape.waves, 1, most_waves);
  while (shape.grouped && groups % shape.waves) shape.waves /= 2;
  const std::int64_t of_tile = shape.grouped ? shape.unit->a.parts : 1;
  shape.unroll = std::clamp<std::int64_t>(
      groups / shape.waves, 1,
      packed ? std::clamp<std::int64_t>(most_packed_loads / (shape.tiles * shape.products * of_tile), 1, most_unroll)
             : most_unroll);
  while (shape.grouped && groups / shape.waves % shape.unroll) --shape.unroll;
  if (const std::int64_t stages = choose(configuration, "narrow_stages", ahead); plain && shape.unit && stages > 1) {
    const std::int64_t chunks = shape.tiles * shape.products * shape.unit->b.parts + shape.row_parts;
    if (stages * shape.waves * chunks * row.wave * chunk_bytes <= row.lds_bytes)
      shape.stages = stages, shape.unroll = 1;
  }
  return shape;
}

}  // namespace kiln::gpu
