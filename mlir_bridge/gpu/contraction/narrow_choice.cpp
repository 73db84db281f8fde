// Whether the narrow kernel (narrow.hpp) takes a product, how it divides it, and what that costs.
#include <algorithm>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/gather.hpp"
#include "mlir_bridge/gpu/contraction/narrow.hpp"
#include "mlir_bridge/gpu/contraction/row_scales.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t most_rows = 16, most_rows_on_vectors = 4;

bool has_few_rows(const kernel_emitter& e, const contraction_problem& problem, std::int64_t rows) {
  const product_types types = problem.types();
  const bool matrix = std::ranges::any_of(find_matrix_instructions(e.target.gpu.matrix, types.factor, false),
                                          [](const matrix_instruction* unit) { return unit->m == most_rows; });
  return rows <= (matrix ? most_rows : most_rows_on_vectors) && !problem.a.along_rows && storage_bits(types.sum) == 32;
}

// If the elements were scattered, every lane would read them one by one.
bool is_whole(const operand& b, element_type factor) { return !b.along_rows && b.piece >= elements_of_chunk(factor); }

bool is_narrow(const kernel_emitter& e, const contraction_problem& problem, std::int64_t rows) {
  return has_few_rows(e, problem, rows) && is_whole(problem.b, problem.types().factor);
}

bool can_be_copied(kernel_emitter& e, const contraction_problem& problem) {
  const element_type factor = problem.types().factor;
  return e.target.gpu.async_copy && is_plain(e, problem.a, factor) && is_plain(e, problem.b, factor) &&
         (!problem.second || is_plain(e, problem.second->b, factor));
}

// Estimates the cycles until the last workgroup has finished: the time to read B once at the memory bandwidth, or the
// latencies of a workgroup's steps, whichever is longer.
double cost(const kernel_emitter& e, const contraction_problem& problem, const narrow_product_shape& shape) {
  constexpr double memory_rate = 24, round_trip = 900, ends = 2500,
                   of_wave = 60;  // bytes a cycle of one compute unit; cycles
  const gpu_row& row = e.target.gpu;
  const product_types types = problem.types();
  const std::int64_t threads = shape.waves * row.wave,
                     workgroups = problem.batch.value() * ceil_div(problem.n.value(), shape.columns());
  const std::int64_t resident = std::max<std::int64_t>(
      1, std::min<std::int64_t>(2048 / threads, row.lds_bytes / (shape.rows * shape.pitch() * 4 * shape.waves)));
  const std::int64_t steps = ceil_div(problem.k.value(),
                                      shape.chunks * elements_of_chunk(types.factor) * shape.waves * shape.unroll),
                     together = row.compute_units * resident;
  const double memory = static_cast<double>(columns_of(problem) * problem.k.value() * storage_bits(types.factor) / 8) /
                        (memory_rate * static_cast<double>(row.compute_units));
  const double trips =
      static_cast<double>(steps) * round_trip / static_cast<double>(std::max<std::int64_t>(1, shape.stages - 1)) +
      ends + static_cast<double>(shape.waves) * of_wave;
  return std::max(memory + ends, static_cast<double>(ceil_div(workgroups, together)) * trips);
}

}  // namespace

bool joins_narrow(const kernel_emitter& e, const contraction_problem& problem) {
  if (problem.is_open() || !has_few_rows(e, problem, problem.m.value()) || choose(e.configuration, "narrow", 1) == 0)
    return false;
  const element_type factor = problem.types().factor;
  return (problem.pack_b || is_whole(problem.b, factor)) &&
         (!problem.second || problem.pack_b || is_whole(problem.second->b, factor)) &&
         (!problem.epsilon || row_scales::apply(e, problem));
}

std::optional<narrow_product_shape> find_narrow(kernel_emitter& e, const contraction_problem& problem,
                                                std::int64_t rows) {
  if (!is_narrow(e, problem, rows) || choose(e.configuration, "narrow", 1) == 0) return std::nullopt;
  return choose_product_shape(e, e.configuration, problem, rows, can_be_copied(e, problem));
}

double narrow_cost(const kernel_emitter& e, const contraction_problem& problem, const narrow_product_shape& shape) {
  return cost(e, problem, shape);
}

bool try_narrow(kernel_emitter& e, const contraction_problem& problem) {
  if (problem.is_open()) return false;
  const auto shape = find_narrow(e, problem, problem.m.value());
  if (shape) emit_narrow(e, problem, *shape);
  return shape.has_value();
}

std::vector<candidate> narrow_space(kernel_emitter& e, const contraction_problem& problem) {
  if (problem.is_open() || !is_narrow(e, problem, problem.m.value())) return {};
  const bool copied = can_be_copied(e, problem);
  std::vector<choice> choices{{"narrow_columns", {1, 2, 4, 8}}, {"narrow_waves", {1, 2, 4, 8, 16}}};
  if (copied) choices.push_back({"narrow_stages", {0, 3, 4, 6}});
  std::vector<candidate> result;
  for (const kernel_configuration& configuration : combinations(choices)) {
    const narrow_product_shape shape = choose_product_shape(e, configuration, problem, problem.m.value(), copied);
    if (shape.waves != configuration.at("narrow_waves") || shape.stages != choose(configuration, "narrow_stages", 0))
      continue;
    result.push_back({configuration, cost(e, problem, shape)});
  }
  return result;
}

}  // namespace kiln::gpu
