// Elementwise work and data movement. Every thread computes a few vectors; a vector is 16 bytes of the widest tensor.
// Neighbouring threads own neighbouring vectors, and all loads are issued before the first store. Elements at the end
// of a flat tensor that do not fill a vector are computed one by one. "lanes" (of a vector), "vectors" (per thread) and
// "threads" (per workgroup) of the configuration overrule the choice.
#include "mlir_bridge/gpu/pointwise.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "mlir_bridge/gpu/streaming_cost.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

std::int64_t common_power(std::int64_t most, std::initializer_list<std::int64_t> numbers) {
  for (std::int64_t n : numbers) most = std::gcd(most, n);
  return most & -most;
}

std::int64_t access_lanes(element_type type) { return 16 / std::max<std::int64_t>(1, storage_bits(type) / 8); }

std::int64_t spread_threads(const target_row& target, std::int64_t items) {
  std::int64_t threads = 256;
  while (threads > 64 && items < threads * target.gpu.compute_units * 2) threads /= 2;
  return threads;
}

std::int64_t configured_threads(const target_row& target, const kernel_configuration& configuration,
                                std::int64_t standard) {
  const std::int64_t wanted = choose(configuration, "threads", standard);
  return wanted > 0 && wanted % target.gpu.wave == 0 && wanted <= target.gpu.max_threads ? wanted : standard;
}

namespace {

// Per thread.
constexpr std::int64_t most_vectors = 4;
constexpr std::int64_t most_configured_vectors = 8;
// Per compute unit.
constexpr std::int64_t resident_threads = 2048;

// Only considers tensors as large as the result, because their accesses dominate the time.
std::int64_t lanes_of_widest(const kernel_emitter& e, const pointwise_space& space, std::int64_t elements) {
  std::int64_t lanes = 16;
  for (const map_root& r : space.roots()) lanes = std::min(lanes, access_lanes(r.destination.type));
  for (value p : e.fusion.parameters())
    if (!p.type().is_static() || p.type().element_count() * 2 >= elements)
      lanes = std::min(lanes, access_lanes(p.type().type));
  return lanes;
}

// The division of the elements among threads.
struct map_shape {
  std::int64_t lanes = 1, vectors = 0, each = 1, threads = 64;  // of a vector; all of them; of a thread; of a workgroup
};

map_shape choose_shape(const kernel_emitter& e, const pointwise_space& space,
                       const kernel_configuration& configuration) {
  const auto& extents = space.extents();
  std::int64_t last = extents.back(),
               elements = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  map_shape shape;
  shape.lanes = std::min(lanes_of_widest(e, space, elements),
                         static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(last))));
  shape.lanes =
      common_power(std::clamp<std::int64_t>(choose(configuration, "lanes", shape.lanes), 1, shape.lanes), {16});
  bool has_tail = extents.size() == 1 && space.cuts().empty();
  if (!has_tail) {
    shape.lanes = common_power(shape.lanes, {last});
    for (std::int64_t cut : space.cuts()) shape.lanes = common_power(shape.lanes, {cut});
  }
  shape.vectors = elements / shape.lanes;
  std::int64_t resident = resident_threads * e.target.gpu.compute_units;
  while (shape.each < most_vectors && shape.vectors >= 2 * shape.each * resident) shape.each *= 2;
  shape.each = std::clamp<std::int64_t>(choose(configuration, "vectors", shape.each), 1, most_configured_vectors);
  shape.threads = configured_threads(e.target, configuration, spread_threads(e.target, shape.vectors));
  return shape;
}

void emit_stage(kernel_emitter& e, const pointwise_space& space, const std::string& name, bool prepare) {
  if (space.extents().empty()) return emit_open_pointwise(e, space, name, prepare);
  if (auto across = space.transposed_run())
    if (emit_transposed(e, space, *across, name, prepare)) return;
  auto& code = e.code;
  const auto& extents = space.extents();
  std::int64_t last = extents.back(),
               elements = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  if (elements == 0) return;
  const auto [lanes, vectors, each, threads] = choose_shape(e, space, e.configuration);
  const std::int64_t left = elements % lanes;

  workgroup group(e, name, {(vectors + threads * each - 1) / (threads * each), 1, 1}, threads, prepare);
  std::vector<std::int64_t> dims = extents;
  dims.back() = last / lanes;
  bool divides = vectors % (threads * each) == 0;
  Value first = code.add(code.mul(group.block(), threads * each), group.thread());
  std::vector<position> places;
  std::vector<values> results;
  auto place = [&](Value vector, std::int64_t n) {
    values digits = code.delinearize(vector, dims);
    std::vector<axis_index> of_runs;
    for (std::size_t run = 0; run + 1 < extents.size(); ++run)
      of_runs.push_back({digits[run], 0, {}, 0, extents[run], 1});
    of_runs.push_back({code.mul(digits.back(), n), n > 1 ? 1 : 0, {}, 0, last, n});
    return space.at(of_runs);
  };
  for (std::int64_t i = 0; i < each; ++i) {
    Value vector = code.add(first, i * threads);
    places.push_back(place(divides ? vector : code.min(vector, vectors - 1), lanes));
    results.push_back(space.evaluate(places.back(), lanes));
  }
  for (std::int64_t i = 0; i < each; ++i) {
    auto store = [&] { space.store(places[static_cast<std::size_t>(i)], results[static_cast<std::size_t>(i)]); };
    if (divides) store();
    else code.when(code.less(code.add(first, i * threads), code.constant(vectors)), store);
  }
  if (left) {
    // The first threads of the first workgroup compute the remaining elements.
    code.when(code.less(first, code.constant(left)),
              [&] { space.emit(space.at({{code.add(first, vectors * lanes), 0, {}, 0, last, 1}}), 1); });
  }
  group.close();
}

}  // namespace

std::vector<candidate> pointwise_choices(kernel_emitter& e) {
  const pointwise_space space(e, output_roots(e));
  const std::int64_t elements =
      std::accumulate(space.extents().begin(), space.extents().end(), std::int64_t{1}, std::multiplies<>());
  if (elements == 0) return {};
  if (auto across = space.transposed_run())
    if (auto tiles = transposed_space(e, space, *across); !tiles.empty()) return tiles;
  // Number of bits moved per element: all inputs as large as the result, and the results.
  std::int64_t bits = 0;
  for (const map_root& r : space.roots()) bits += storage_bits(r.destination.type);
  for (value p : e.fusion.parameters())
    bits += static_cast<std::int64_t>(storage_bits(p.type().type)) * std::min(elements, p.type().element_count()) /
            elements;
  std::vector<candidate> result;
  for (std::int64_t lanes = choose_shape(e, space, {}).lanes; lanes >= 1; lanes /= 2)
    for (std::int64_t vectors : {1, 2, 4, 8})
      for (std::int64_t threads : {64, 128, 256, 512}) {
        kernel_configuration configuration{{"lanes", lanes}, {"vectors", vectors}, {"threads", threads}};
        const map_shape shape = choose_shape(e, space, configuration);
        const std::int64_t of_group = shape.threads * shape.each;
        streaming_work work{.groups = (shape.vectors + of_group - 1) / of_group,
                            .threads = shape.threads,
                            .access_bytes = std::max<std::int64_t>(1, shape.lanes * bits / 16)};
        work.bytes = static_cast<double>(shape.lanes * shape.each * bits) / 8;
        work.cycles = static_cast<double>(of_group * (shape.lanes * space.operations() + 8)) / 128;
        result.push_back({std::move(configuration), streaming_cycles(e.target.gpu, work)});
      }
  return result;
}

void emit_pointwise(kernel_emitter& e) { emit_stage(e, pointwise_space(e, output_roots(e)), "map", false); }

void emit_pointwise_into(kernel_emitter& e, value v, const buffer& destination, bool prepare) {
  emit_stage(e, pointwise_space(e, {{v, destination}}), prepare ? "prepare" : "materialize", prepare);
}

void emit_pointwise_parts(kernel_emitter& e, std::vector<map_root> parts, const std::string& name) {
  emit_stage(e, pointwise_space(e, std::move(parts)), name, false);
}

}  // namespace kiln::gpu
