// Elementwise work and data movement: every thread computes a few vectors of 16 bytes of the widest tensor, neighbouring threads neighbouring
// vectors, all loads before all stores. What the vectors leave over at the end of a flat tensor is done one by one.
#include "mlir_bridge/gpu/map.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "mlir_bridge/gpu/anchors.hpp"
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

namespace {

constexpr std::int64_t most_vectors = 4;               // of one thread
constexpr std::int64_t resident_threads = 2048;        // of one compute unit

// Of the tensors that are as large as the result: their accesses are what costs.
std::int64_t lanes_of_widest(const kernel_emitter& e, const map_space& space, std::int64_t elements) {
  std::int64_t lanes = 16;
  for (const map_root& r : space.roots()) lanes = std::min(lanes, access_lanes(r.destination.type));
  for (value p : e.cluster.parameters())
    if (p.type().element_count() * 2 >= elements) lanes = std::min(lanes, access_lanes(p.type().type));
  return lanes;
}

void emit_stage(kernel_emitter& e, const map_space& space, const std::string& name, bool prepare) {
  if (auto across = space.transposed_run())
    if (emit_transposed(e, space, *across, name, prepare)) return;
  auto& code = e.code;
  const auto& extents = space.extents();
  std::int64_t last = extents.back(), elements = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  if (elements == 0) return;
  std::int64_t lanes = std::min(lanes_of_widest(e, space, elements), static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(last))));
  bool has_tail = extents.size() == 1 && space.cuts().empty();
  if (!has_tail) {
    lanes = common_power(lanes, {last});
    for (std::int64_t cut : space.cuts()) lanes = common_power(lanes, {cut});
  }
  std::int64_t vectors = elements / lanes, left = elements % lanes;
  std::int64_t each = 1, resident = resident_threads * e.target.gpu.compute_units;
  while (each < most_vectors && vectors >= 2 * each * resident) each *= 2;
  std::int64_t threads = spread_threads(e.target, vectors);

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
    for (std::size_t run = 0; run + 1 < extents.size(); ++run) of_runs.push_back({digits[run], 0, {}, 0, extents[run], 1});
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
    // The first threads of the first workgroup.
    code.when(code.less(first, code.constant(left)), [&] {
      space.emit(space.at({{code.add(first, vectors * lanes), 0, {}, 0, last, 1}}), 1);
    });
  }
  group.close();
}

}  // namespace

void emit_map(kernel_emitter& e) { emit_stage(e, map_space(e, output_roots(e)), "map", false); }

void emit_map_into(kernel_emitter& e, value v, const buffer& destination, bool prepare) {
  emit_stage(e, map_space(e, {{v, destination}}), prepare ? "prepare" : "materialize", prepare);
}

}  // namespace kiln::gpu
