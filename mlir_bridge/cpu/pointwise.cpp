// Kernels without an anchor, and stages that store a value to memory: loops over the elements of the outputs, with
// vectors along the last axis. Axes that every access treats as one are collapsed. The loop over the last axis is split
// where concat or pad switch operands. If a load is strided along the last axis (a transpose), the loops run over
// tiles, so that whole cache lines are used. If the last axis is open, its loop consists of whole vectors and a
// remainder. "block" (elements of the loops inside one parallel index), "tile" (rows of a transpose) and "grain"
// (kernel_emitter::parallel) of the configuration overrule the choice.
#include "mlir_bridge/cpu/pointwise.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mlir_bridge/codegen/alike_operands.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/pointwise_space.hpp"
#include "mlir_bridge/cpu/open_span.hpp"

namespace kiln::cpu {

namespace {

// Elements of the loops inside one parallel index.
constexpr std::int64_t standard_row_elements = 16384;
// Rows of a transposed tile.
constexpr std::int64_t standard_tile = 16;
// Densely connected networks concatenate dozens of tensors.
constexpr std::size_t most_segments = 64;

class pointwise_stage {
 public:
  pointwise_stage(kernel_emitter& e, std::vector<map_root> roots)
      : e_(e),
        space_(e, std::move(roots)),
        sizes_(space_.sizes()),
        type_(space_.widest()),
        row_elements(std::max<std::int64_t>(256, choose(e.configuration, "block", standard_row_elements))),
        tile(std::max<std::int64_t>(1, choose(e.configuration, "tile", standard_tile))) {}

  const pointwise_space& space() const { return space_; }

  void emit(const std::string& name, bool prepare) {
    std::size_t last = sizes_.size() - 1;
    std::int64_t cost = space_.operations();
    const std::optional<std::size_t> transposed = space_.transposed_run();
    if (!sizes_.back().is_static())
      return transposed ? emit_open_tiles(name, *transposed, cost, prepare) : emit_open_blocks(name, cost, prepare);
    std::int64_t extent = sizes_.back().value();
    const std::vector<axis_segment> segments = make_segments(extent, !transposed);
    if (transposed) return emit_tiles(name, *transposed, segments, cost, prepare);
    if (segments.size() == 1 && segments[0].pieces == 1 && extent >= 2 * row_elements)
      return emit_blocks(name, cost, prepare);
    // Small trailing axes become loops inside the parallel index.
    std::size_t inner = last;
    std::int64_t elements = extent;
    while (inner > 0 && sizes_[inner - 1].is_static() && elements * sizes_[inner - 1].value() <= row_elements)
      elements *= sizes_[--inner].value();
    std::vector<dim> outer(sizes_.begin(), sizes_.begin() + static_cast<std::ptrdiff_t>(inner));
    e_.parallel_open(
        name, outer, elements * cost,
        [&](std::span<const Value> at) { emit_rows(values(at.begin(), at.end()), segments); }, prepare);
  }

 private:
  // Only whole vectors of a piece are written out, and not many of them.
  std::vector<axis_segment> make_segments(std::int64_t extent, bool join) const {
    auto cuts = space_.cuts();
    if (cuts.size() >= most_segments) cuts.clear();
    constexpr std::int64_t most_vectors = 8;
    return divide_axis(e_, extent, cuts, [&](std::int64_t piece) {
      const std::int64_t lanes = e_.lanes_for(type_, piece);
      return join && piece % lanes == 0 && piece / lanes <= most_vectors;
    });
  }

  void emit_rows(values at, const std::vector<axis_segment>& segments) {
    if (at.size() + 1 < sizes_.size()) {
      e_.code.loop(0, sizes_[at.size()].value(), 1, [&](Value i) {
        values deeper = at;
        deeper.push_back(i);
        emit_rows(std::move(deeper), segments);
      });
      return;
    }
    for (const axis_segment& segment : segments)
      if (segment.pieces > 1) emit_pieces(at, segment);
      else emit_row(at, segment.low, segment.high);
  }

  // Emits the alike operands of a concat: a loop over them, in which one operand is written out.
  void emit_pieces(const values& at, const axis_segment& segment) {
    code_builder& code = e_.code;
    const std::int64_t extent = segment.extent(), lanes = e_.lanes_for(type_, extent);
    code.loop(0, segment.pieces, 1, [&](Value piece) {
      const Value first = code.add(code.mul(piece, extent), segment.low);
      for (std::int64_t i = 0; i < extent; i += lanes)
        emit_element(at, code.add(first, i), lanes, segment, std::gcd(std::gcd(segment.low, extent), lanes));
    });
  }

  // Emits one row of the last run, [low, high), with whole vectors. If the length is not divisible, the last vector
  // overlaps the one before.
  void emit_row(const values& at, std::int64_t low, std::int64_t high) {
    std::int64_t lanes = e_.lanes_for(type_, high - low);
    bool divides = (high - low) % lanes == 0;
    e_.code.loop(low, high, lanes, [&](Value i) {
      emit_element(at, divides ? i : e_.code.min(i, high - lanes), lanes, {low, high},
                   divides ? std::gcd(low, lanes) : 1);
    });
  }

  void emit_element(const values& at, Value i, std::int64_t lanes, const axis_segment& range, std::int64_t multiple) {
    e_.keep_loops();
    std::vector<axis_index> of_runs;
    for (std::size_t run = 0; run + 1 < sizes_.size(); ++run)
      of_runs.push_back({at[run], 0, {}, 0, known_bound(sizes_[run]), 1});
    of_runs.push_back({i, lanes > 1 ? 1 : 0, {}, range.low, range.high, multiple ? multiple : any_multiple});
    space_.emit(space_.at(of_runs), lanes);
  }

  // Divides a long last run into blocks that are work items. The last block also takes the remainder.
  void emit_blocks(const std::string& name, std::int64_t cost, bool prepare) {
    auto& code = e_.code;
    std::int64_t extent = sizes_.back().value(), lanes = e_.lanes_for(type_, extent);
    std::int64_t block = std::max<std::int64_t>(256, row_elements / cost / 256 * 256),
                 blocks = std::max<std::int64_t>(1, extent / block);
    std::vector<dim> outer(sizes_.begin(), sizes_.end() - 1);
    outer.push_back(blocks);
    bool divides = extent % lanes == 0;
    e_.parallel_open(
        name, outer, block * cost,
        [&](std::span<const Value> at) {
          values rows(at.begin(), at.end() - 1);
          Value low = code.mul(at.back(), block);
          Value is_last = code.equal(at.back(), code.constant(blocks - 1));
          Value high = code.select(is_last, code.constant(extent), code.add(low, block));
          code.loop(low, high, lanes, [&](Value i) {
            emit_element(rows, divides ? i : code.min(i, code.sub(high, lanes)), lanes, {0, extent},
                         divides ? lanes : 1);
          });
        },
        prepare);
  }

  // For a load that is contiguous along run `across` and strided along the last one: loops over tiles of `tile` rows,
  // whose cache lines stay in the cache.
  void emit_tiles(const std::string& name, std::size_t across, const std::vector<axis_segment>& segments,
                  std::int64_t cost, bool prepare) {
    auto& code = e_.code;
    const dim& rows = sizes_[across];
    std::vector<dim> outer(sizes_.begin(), sizes_.end() - 1);
    outer[across] = (rows + tile - 1) / tile;
    e_.parallel_open(
        name, outer, tile * sizes_.back().value() * (cost + 2),
        [&](std::span<const Value> at) {
          values index(at.begin(), at.end());
          Value first = code.mul(index[across], tile), end = e_.min(code.add(first, tile), rows);
          for (const axis_segment& segment : segments) {
            std::int64_t from = segment.low, to = segment.high, lanes = e_.lanes_for(type_, to - from);
            bool divides = (to - from) % lanes == 0;
            code.loop(from, to, lanes, [&](Value i) {
              Value column = divides ? i : code.min(i, to - lanes);
              code.loop(first, end, 1, [&](Value row) {
                values inside = index;
                inside[across] = row;
                emit_element(inside, column, lanes, {from, to}, divides ? std::gcd(from, lanes) : 1);
              });
            });
          }
        },
        prepare);
  }

  // --- an open last run

  // Emits one vector (or element) of an open row.
  void emit_open_element(const values& at, const span_part& part) {
    emit_element(at, part.first, part.lanes, {0, INT64_MAX}, part.multiple);
  }

  void emit_open_blocks(const std::string& name, std::int64_t cost, bool prepare) {
    const std::int64_t block = std::max<std::int64_t>(256, row_elements / 4 / cost / 256 * 256);
    std::vector<dim> outer(sizes_.begin(), sizes_.end() - 1);
    outer.push_back((sizes_.back() + block - 1) / block);
    e_.parallel_open(
        name, outer, block * cost,
        [&](std::span<const Value> at) {
          const values rows(at.begin(), at.end() - 1);
          open_span span = span_of_block(e_, sizes_.back(), e_.code.mul(at.back(), block), block, type_);
          span.walk([&](const span_part& part) { emit_open_element(rows, part); });
        },
        prepare);
  }

  void emit_open_tiles(const std::string& name, std::size_t across, std::int64_t cost, bool prepare) {
    auto& code = e_.code;
    // Columns per work item: whole cache lines of the stored tensor.
    constexpr std::int64_t block = 256;
    const dim &rows = sizes_[across], &columns = sizes_.back();
    std::vector<dim> outer(sizes_.begin(), sizes_.end());
    outer[across] = (rows + tile - 1) / tile;
    outer.back() = (columns + block - 1) / block;
    e_.parallel_open(
        name, outer, tile * block * (cost + 2),
        [&](std::span<const Value> at) {
          values index(at.begin(), at.end() - 1);
          Value first = code.mul(index[across], tile), end = e_.min(code.add(first, tile), rows);
          open_span span = span_of_block(e_, columns, code.mul(at.back(), block), block, type_);
          span.walk([&](const span_part& part) {
            code.loop(first, end, 1, [&](Value row) {
              values inside = index;
              inside[across] = row;
              emit_open_element(inside, part);
            });
          });
        },
        prepare);
  }

  kernel_emitter& e_;
  pointwise_space space_;
  const std::vector<dim>& sizes_;
  element_type type_;
  std::int64_t row_elements, tile;
};

}  // namespace

void emit_pointwise(kernel_emitter& e) { pointwise_stage(e, output_roots(e)).emit("map", false); }

std::vector<candidate> pointwise_choices(kernel_emitter& e) {
  const pointwise_stage stage(e, output_roots(e));
  std::vector<candidate> result;
  // For transposes: from 16 elements on, whole cache lines of the loads are used, and the lines of a tile fit into the
  // first-level cache.
  if (stage.space().transposed_run())
    for (std::int64_t tile : {4, 8, 16, 32, 64})
      for (std::int64_t grain : {1 << 14, 1 << 16})
        result.push_back({{{"tile", tile}, {"grain", grain}},
                          std::abs(std::log2(static_cast<double>(tile) / 16)) + (grain > 1 << 14 ? 0.5 : 0)});
  else
    for (std::int64_t block : {1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16})
      for (std::int64_t grain : {1 << 12, 1 << 14, 1 << 16, 1 << 18})
        result.push_back({{{"block", block}, {"grain", grain}},
                          std::abs(std::log2(static_cast<double>(block) / (1 << 14))) +
                              std::abs(std::log2(static_cast<double>(grain) / (1 << 14)))});
  return result;
}

void emit_pointwise_into(kernel_emitter& e, value v, const buffer& destination, bool prepare) {
  pointwise_stage(e, {{v, destination}}).emit(prepare ? "prepare" : "materialize", prepare);
}

void emit_pointwise_parts(kernel_emitter& e, std::vector<map_root> parts, const std::string& name) {
  pointwise_stage(e, std::move(parts)).emit(name, false);
}

}  // namespace kiln::cpu
