// Transposes: a square tile is computed along the axis along which loads are contiguous, stored to shared memory in the
// type of the result, and written along the last axis. Chunks of 16 bytes are swizzled so that neither access has bank
// conflicts:
//   element (l, a) of the tile (l along the last run, a across) is at l * side + (a / chunk ^ l / chunk % chunks) *
//   chunk + a % chunk.
#include <algorithm>
#include <numeric>
#include <optional>

#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/gpu/streaming_cost.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t standard_threads = 256;
// Minimum extent of both axes. Tiles of smaller ones would be mostly empty.
constexpr std::int64_t smallest_extent = 16;

struct tile_region {
  Value pointer;
  element_type type;
  std::int64_t side, chunk;

  Value offset(code_builder& code, Value l, Value a) const {
    Value key = code.rem(code.div(l, chunk), side / chunk);
    Value place = code.make<mlir::arith::XOrIOp>(code.div(a, chunk), key);
    return code.add(code.add(code.mul(l, side), code.mul(place, chunk)), code.rem(a, chunk));
  }
};

dim count(const std::vector<dim>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), dim(1), std::multiplies<>());
}

// Returns the sizes of the runs, with the two that a tile covers counted in tiles.
std::vector<dim> tiles_of(const pointwise_space& space, std::size_t across, std::int64_t side) {
  std::vector<dim> sizes = space.sizes();
  sizes[across] = (sizes[across] + side - 1) / side, sizes.back() = (sizes.back() + side - 1) / side;
  return sizes;
}

struct tile_choice {
  // `bytes` is the shared memory for all results.
  std::int64_t side = 64, threads = standard_threads, bytes = 0;
};

// Returns nullopt if tiles are not worthwhile or do not fit.
std::optional<tile_choice> choose_tile(const kernel_emitter& e, const pointwise_space& space, std::size_t across,
                                       const kernel_configuration& configuration) {
  if (known_bound(space.sizes()[across]) < smallest_extent || known_bound(space.sizes().back()) < smallest_extent)
    return std::nullopt;
  tile_choice tile;
  auto bytes = [&](std::int64_t side) {
    std::int64_t all = 0;
    for (const map_root& r : space.roots())
      all += static_cast<std::int64_t>(storage_bytes(r.destination.type, static_cast<std::size_t>(side * side)));
    return all;
  };
  const dim tiles = count(tiles_of(space, across, 64));
  tile.side = tiles.is_static() && tiles.value() >= 2 * e.target.gpu.compute_units ? 64 : 32;
  const std::int64_t most = e.target.gpu.lds_bytes / 2, wanted = choose(configuration, "tile", tile.side);
  if ((wanted == 32 || wanted == 64 || wanted == 128) && bytes(wanted) <= most) tile.side = wanted;
  tile.bytes = bytes(tile.side);
  tile.threads = configured_threads(e.target, configuration, standard_threads);
  if (tile.bytes > most) return std::nullopt;
  return tile;
}

}  // namespace

std::vector<candidate> transposed_space(kernel_emitter& e, const pointwise_space& space, std::size_t across) {
  std::vector<candidate> result;
  if (!choose_tile(e, space, across, {})) return result;
  for (std::int64_t side : {32, 64, 128})
    for (std::int64_t threads : {64, 128, 256, 512}) {
      kernel_configuration configuration{{"tile", side}, {"threads", threads}};
      const auto tile = choose_tile(e, space, across, configuration);
      if (!tile || tile->side != side || tile->threads != threads) continue;
      const double bytes = static_cast<double>(tile->bytes);
      streaming_work work{.groups = count(tiles_of(space, across, side)).value(),
                          .threads = threads,
                          .bytes = 2 * bytes / static_cast<double>(threads),
                          .trips = 2};
      // The tile is written to shared memory once and read once, with strides.
      work.cycles = bytes / 128 * 4;
      result.push_back({std::move(configuration), streaming_cycles(e.target.gpu, work)});
    }
  return result;
}

bool emit_transposed(kernel_emitter& e, const pointwise_space& space, std::size_t across, const std::string& name,
                     bool prepare) {
  auto& code = e.code;
  const std::vector<dim>& sizes = space.sizes();
  const std::size_t last = sizes.size() - 1;
  const dim &height = sizes[across], &width = sizes[last];
  const auto chosen = choose_tile(e, space, across, e.configuration);
  if (!chosen) return false;
  const std::int64_t side = chosen->side, threads = chosen->threads;
  std::int64_t chunk = 16;
  for (const map_root& r : space.roots()) chunk = std::min(chunk, access_lanes(r.destination.type));
  chunk = std::min(chunk, side / 4);
  auto tiles = tiles_of(space, across, side);
  std::int64_t load_lanes = common_power(chunk, {known_factor(height)}),
               store_lanes = common_power(chunk, {known_factor(width)});
  bool divides = known_factor(height) % side == 0 && known_factor(width) % side == 0;

  workgroup group(e, name, count(tiles), threads, prepare);
  std::vector<tile_region> regions;
  for (const map_root& r : space.roots())
    regions.push_back(
        {group.lds(static_cast<std::int64_t>(storage_bytes(r.destination.type, static_cast<std::size_t>(side * side)))),
         r.destination.type, side, chunk});
  values block = e.delinearize(group.block(), tiles);
  Value top = code.mul(block[across], side), left = code.mul(block[last], side);
  auto place = [&](axis_index a, axis_index l) {
    std::vector<axis_index> of_runs;
    for (std::size_t run = 0; run < sizes.size(); ++run)
      of_runs.push_back(run == across ? a
                        : run == last ? l
                                      : axis_index{block[run], 0, {}, 0, known_bound(sizes[run]), 1});
    return space.at(of_runs);
  };
  // Distributes vectors of the tile, `per_line` per line, over the threads. Calls body(line, position in the line).
  auto each = [&](std::int64_t lanes, const std::function<void(Value line, Value at)>& body) {
    std::int64_t per_line = side / lanes, vectors = per_line * side;
    for (std::int64_t first = 0; first < vectors; first += threads) {
      Value vector = code.add(group.thread(), first);
      auto one = [&] { body(code.div(vector, per_line), code.mul(code.rem(vector, per_line), lanes)); };
      if (first + threads <= vectors) one();
      else code.when(code.less(vector, code.constant(vectors)), one);
    }
  };
  each(load_lanes, [&](Value l, Value a) {
    Value row = code.add(top, a), column = code.add(left, l);
    if (!divides) row = e.min(row, height - load_lanes), column = e.min(column, width - 1);
    values results = space.evaluate(place({row, load_lanes > 1 ? 1 : 0, {}, 0, known_bound(height), load_lanes},
                                          {column, 0, {}, 0, known_bound(width), 1}),
                                    load_lanes);
    for (std::size_t i = 0; i < regions.size(); ++i)
      code.store(regions[i].pointer, regions[i].offset(code, l, a), regions[i].type, results[i], load_lanes);
  });
  group.barrier();
  each(store_lanes, [&](Value a, Value l) {
    Value row = code.add(top, a), column = code.add(left, l);
    auto move = [&] {
      values results;
      for (const tile_region& r : regions)
        results.push_back(code.load_strided(r.pointer, r.offset(code, l, a), side, r.type, store_lanes));
      space.store(place({row, 0, {}, 0, known_bound(height), 1},
                        {column, store_lanes > 1 ? 1 : 0, {}, 0, known_bound(width), store_lanes}),
                  results);
    };
    if (divides) move();
    else
      code.when(
          code.make<mlir::arith::AndIOp>(code.less(row, e.size(height)), code.less(column, e.size(width))).getResult(),
          move);
  });
  group.close();
  return true;
}

}  // namespace kiln::gpu
