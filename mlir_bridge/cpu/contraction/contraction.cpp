#include "mlir_bridge/cpu/contraction/contraction.hpp"

#include <algorithm>
#include <map>

#include "mlir_bridge/cpu/contraction/factor_loads.hpp"
#include "mlir_bridge/cpu/contraction/matrix_tile.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

std::int64_t contraction_axis::outputs() const {
  std::int64_t most = 0;
  for (const axis_phase& phase : phases) most = std::max(most, phase.outputs);
  return most;
}

bool contraction_axis::clipped() const {
  return std::any_of(phases.begin(), phases.end(), [&](const axis_phase& phase) {
    if (phase.outputs == 0 || phase.taps == 0) return false;
    return phase.first < 0 || phase.first + (phase.outputs - 1) * stride + (phase.taps - 1) * tap_stride >= in;
  });
}

std::int64_t contraction::panels() const {
  std::int64_t n = 0;
  for (const column_segment& segment : segments) n += segment.count;
  return n;
}

std::int64_t contraction::tiles() const {
  std::int64_t n = (axes.back().outputs() + rows - 1) / rows;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) n *= axes[i].outputs();
  return n;
}

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Returns the rows r of a tile with 0 <= base + r * stride < in and r < valid.
row_range rows_inside(std::int64_t base, std::int64_t stride, std::int64_t in, std::int64_t rows, std::int64_t valid) {
  row_range range{std::min(rows, ceil_div(std::max<std::int64_t>(0, -base), stride)),
                  std::min({rows, valid, ceil_div(std::max<std::int64_t>(0, in - base), stride)})};
  return range.first < range.last ? range : row_range{};
}

}  // namespace

std::vector<row_range> row_ranges(const contraction_axis& axis, std::int64_t rows) {
  std::map<row_range, std::int64_t> uses;
  for (const axis_phase& phase : axis.phases)
    for (std::int64_t row = 0; row < phase.outputs; row += rows)
      for (std::int64_t j = 0; j < phase.taps; ++j)
        ++uses[rows_inside(row * axis.stride + phase.first + j * axis.tap_stride, axis.stride, axis.in, rows,
                           phase.outputs - row)];
  std::vector<row_range> ranges;
  for (const auto& [range, count] : uses) ranges.push_back(range);
  std::sort(ranges.begin(), ranges.end(), [&](const row_range& a, const row_range& b) { return uses[a] > uses[b]; });
  return ranges;
}

namespace {

class contraction_emitter {
 public:
  contraction_emitter(kernel_emitter& emitter, const contraction& contraction)
      : e(emitter),
        code(emitter.code),
        c(contraction),
        accumulation(accumulation_type(contraction.left.type)),
        ranges(row_ranges(contraction.axes.back(), contraction.rows)) {}

  void emit() {
    const std::int64_t column_blocks = ceil_div(c.panels(), c.panels_per_item),
                       tile_blocks = ceil_div(c.tiles(), c.tiles_per_item);
    std::vector<std::int64_t> grid{c.batches, c.groups};
    for (const contraction_axis& axis : c.axes) grid.push_back(static_cast<std::int64_t>(axis.phases.size()));
    grid.push_back(column_blocks);
    grid.push_back(tile_blocks);
    std::int64_t items = 1;
    for (std::int64_t n : grid) items *= n;
    e.begin_stage("contraction", items);
    if (is_long_sum()) e.keep_loops();
    left = {e.pointer(c.left), c.left.type, c.axes.back().stride * c.axes.back().pitch, c.left_step};
    left.steps_of_load = loads_of(e.target, accumulation, steps_are_contiguous(), c.by_lane).steps;
    right = {e.pointer(c.right), c.right.type, 0, c.right_step, c.prefetch_steps, c.by_lane};
    for (const column_segment& segment : c.segments)
      writers.emplace_back(e, tile_shape{c.rows, segment.vectors, segment.lanes}, accumulation);
    std::int64_t widest = 0;
    for (const column_segment& segment : c.segments) widest = std::max(widest, segment.columns());
    if (c.matrix) {
      const column_segment& segment = c.segments.front();
      matrix.emplace(e, *c.by_lane, tile_shape{c.rows, segment.vectors, segment.lanes});
    }
    if (c.step_block) partials = code.stack(accumulation, c.tiles_per_item * c.rows * widest);
    code.loop(e.begin(), e.end(), 1, [&](Value item) {
      values digits = code.delinearize(item, grid);
      batch = digits[0];
      group = digits[1];
      phase.assign(digits.begin() + 2, digits.end() - 2);
      Value first_panel = code.mul(digits[digits.size() - 2], c.panels_per_item),
            first_tile = code.mul(digits.back(), c.tiles_per_item);
      Value last_panel = code.min(code.add(first_panel, c.panels_per_item), c.panels()),
            last_tile = code.min(code.add(first_tile, c.tiles_per_item), c.tiles());
      auto each_panel = [&](const std::function<void(std::size_t, Value)>& body) {
        for (std::size_t s = 0; s < c.segments.size(); ++s) {
          const column_segment& segment = c.segments[s];
          Value low = code.max(first_panel, segment.first_panel),
                high = code.min(last_panel, segment.first_panel + segment.count);
          code.loop(low, high, 1, [&](Value panel) { body(s, code.sub(panel, segment.first_panel)); });
        }
      };
      auto each_tile = [&](const std::function<void(Value)>& body) { code.loop(first_tile, last_tile, 1, body); };
      if (c.step_block)
        return each_panel(
            [&](std::size_t s, Value panel) { emit_blocks(c.segments[s], writers[s], panel, first_tile, last_tile); });
      if (c.panels_inside)
        each_tile([&](Value tile) {
          each_panel([&](std::size_t s, Value panel) { emit_tile(c.segments[s], writers[s], panel, tile); });
        });
      else
        each_panel([&](std::size_t s, Value panel) {
          each_tile([&](Value tile) { emit_tile(c.segments[s], writers[s], panel, tile); });
        });
    });
    if (matrix) matrix->release();
    e.end_stage();
  }

 private:
  // A loop of many steps gains nothing from being unrolled. Loops of few steps and loops over taps do.
  bool is_long_sum() const {
    constexpr std::int64_t least_steps = 64;
    return c.steps >= least_steps && std::ranges::all_of(c.axes, [](const contraction_axis& axis) {
             return std::ranges::all_of(axis.phases, [](const axis_phase& phase) { return phase.taps == 1; });
           });
  }

  // Returns a field of the current phase of an axis.
  Value of_phase(std::size_t axis, std::int64_t axis_phase::* field) {
    const auto& phases = c.axes[axis].phases;
    Value v = code.constant(phases[0].*field);
    for (std::size_t p = 1; p < phases.size(); ++p)
      if (phases[p].*field != phases[p - 1].*field || code_builder::known(v) != phases[p].*field)
        v = code.select(code.less(phase[axis], code.constant(static_cast<std::int64_t>(p))), v,
                        code.constant(phases[p].*field));
    return v;
  }

  // All tiles of an item process a block of steps before they start the next block, so that the block's part of the
  // panel stays in a near cache. Partial sums are kept in memory in between.
  void emit_blocks(const column_segment& segment, tile_writer& writer, Value panel, Value first_tile, Value last_tile) {
    const std::int64_t sums_of_tile = c.rows * segment.vectors;
    auto place = [&](Value tile, std::int64_t i) {
      return code.add(code.mul(code.sub(tile, first_tile), c.rows * segment.columns()), i * segment.lanes);
    };
    auto kept = [&](Value tile) {
      values sums;
      for (std::int64_t i = 0; i < sums_of_tile; ++i)
        sums.push_back(code.load(partials, place(tile, i), accumulation, segment.lanes));
      return sums;
    };
    auto keep = [&](Value tile, const values& sums) {
      for (std::int64_t i = 0; i < sums_of_tile; ++i)
        code.store(partials, place(tile, i), accumulation, sums[static_cast<std::size_t>(i)]);
    };
    const values zeros = zero_tile(code, {c.rows, segment.vectors, segment.lanes}, accumulation);
    code.loop(first_tile, last_tile, 1, [&](Value tile) { keep(tile, zeros); });
    code.loop(0, c.steps, c.step_block, [&](Value first) {
      first_step = first;
      code.loop(first_tile, last_tile, 1,
                [&](Value tile) { at_tile(tile, [&] { keep(tile, sums_of(segment, panel, kept(tile))); }); });
    });
    first_step = {};
    code.loop(first_tile, last_tile, 1,
              [&](Value tile) { at_tile(tile, [&] { writer.write(kept(tile), place_of(segment, panel)); }); });
  }

  void emit_tile(const column_segment& segment, tile_writer& writer, Value panel, Value tile) {
    at_tile(tile, [&] {
      const tile_place place = place_of(segment, panel);
      if (c.fetch_results) writer.fetch(place);
      if (matrix) return emit_matrix_tile(segment, writer, panel, place);
      writer.write(sums_of(segment, panel, zero_tile(code, {c.rows, segment.vectors, segment.lanes}, accumulation)),
                   place);
    });
  }

  void emit_matrix_tile(const column_segment& segment, tile_writer& writer, Value panel, const tile_place& place) {
    if (!place.rows_always_full) matrix->use_rows(place.valid_rows);
    matrix->clear();
    sums_of(segment, panel, {});
    matrix->store(writer.memory());
    if (!place.rows_always_full) matrix->use_all_rows();
    writer.write_memory(place);
  }

  // Sets the position of the tile, and emits the body for tiles that exist.
  void at_tile(Value tile, const std::function<void()>& body) {
    std::vector<std::int64_t> dims;
    for (std::size_t i = 0; i + 1 < c.axes.size(); ++i) dims.push_back(c.axes[i].outputs());
    dims.push_back(ceil_div(c.axes.back().outputs(), c.rows));
    outputs = code.delinearize(tile, dims);
    outputs.back() = code.mul(outputs.back(), c.rows);
    valid_rows = code.min(code.sub(of_phase(c.axes.size() - 1, &axis_phase::outputs), outputs.back()), c.rows);
    // If phases have different numbers of outputs, some tiles are empty.
    Value exists;
    for (std::size_t i = 0; i < c.axes.size(); ++i) {
      Value count = of_phase(i, &axis_phase::outputs);
      if (code_builder::known(count)) continue;
      Value inside = code.less(outputs[i], count);
      exists = exists ? Value(code.make<mlir::arith::AndIOp>(exists, inside)) : inside;
    }
    if (exists) code.when(exists, body);
    else body();
  }

  Value column_of(const column_segment& segment, Value panel) {
    return code.add(code.mul(panel, segment.columns()), segment.first_column);
  }

  // Adds the products of the tile to `sums`, over all steps or those of the current block.
  values sums_of(const column_segment& segment, Value panel, values sums) {
    const tile_shape shape{c.rows, segment.vectors, segment.lanes};
    Value left_offset = code.add(code.add(code.mul(batch, c.left_batch), code.mul(group, c.left_group)), c.left_first);
    Value right_offset = code.add(code.mul(group, c.right_group),
                                  c.right_panel ? code.mul(panel, c.right_panel) : column_of(segment, panel));
    if (c.step_block) {
      left_offset = code.add(left_offset, code.mul(first_step, c.left_step));
      right_offset = code.add(right_offset, code.mul(first_step, c.right_step));
    }
    return reduce(0, shape, left_offset, right_offset, code.constant(0), std::move(sums));
  }

  // Returns the position of the current tile in the result.
  tile_place place_of(const column_segment& segment, Value panel) {
    tile_place place;
    place.valid_rows = valid_rows;
    const auto& phases = c.axes.back().phases;
    place.rows_always_full = std::all_of(phases.begin(), phases.end(), [&](const axis_phase& p) {
      return p.outputs == phases[0].outputs && p.outputs % c.rows == 0;
    });
    if (segment.first_column + segment.count * segment.columns() > c.columns) {
      place.last_columns = (c.columns - segment.first_column) % segment.columns();
      place.in_last_panel = code.equal(panel, code.constant(segment.count - 1));
    }
    place.column = code.add(column_of(segment, panel), code.mul(group, c.result_group_columns));
    place.locate = [&, here = outputs](Value row) {
      values where = here;
      where.back() = code.add(where.back(), row);
      for (std::size_t i = 0; i < where.size(); ++i)
        if (c.axes[i].phases.size() > 1)
          where[i] = code.add(code.mul(where[i], static_cast<std::int64_t>(c.axes[i].phases.size())), phase[i]);
      return c.locate(batch, group, where);
    };
    return place;
  }

  values reduce(std::size_t i, const tile_shape& shape, Value left_offset, Value right_offset, Value window,
                values sums) {
    const contraction_axis& axis = c.axes[i];
    const bool last = i + 1 == c.axes.size();
    Value base = code.add(code.mul(outputs[i], axis.stride), of_phase(i, &axis_phase::first));
    Value taps = of_phase(i, &axis_phase::taps);
    Value low = code.constant(0), high = taps;
    if (!last && axis.clipped()) {
      low = ceil_div_positive(code.sub(code.constant(0), base), axis.tap_stride);
      high = code.min(taps, ceil_div_positive(code.sub(code.constant(axis.in), base), axis.tap_stride));
    }
    if (last && taps_are_contiguous()) {
      Value tap = code.mul(code.mul(window, axis.window), c.right_tap);
      return accumulate_rows(base, shape, code.add(left_offset, code.mul(base, axis.pitch)),
                             code.add(right_offset, tap), steps_at_once() * axis.window, std::move(sums));
    }
    return code.loop(low, high, 1, std::move(sums), [&](Value j, std::span<const Value> carried) {
      values sums(carried.begin(), carried.end());
      Value position = code.add(base, code.mul(j, axis.tap_stride));
      Value left_at = code.add(left_offset, code.mul(position, axis.pitch));
      Value tap = code.add(of_phase(i, &axis_phase::window_first), code.mul(j, of_phase(i, &axis_phase::window_step)));
      Value window_at = code.add(code.mul(window, axis.window), tap);
      if (!last) return reduce(i + 1, shape, left_at, right_offset, window_at, std::move(sums));
      return accumulate_rows(position, shape, left_at, code.add(right_offset, code.mul(window_at, c.right_tap)),
                             steps_at_once(), std::move(sums));
    });
  }

  // Returns true if the taps of the last axis are contiguous in memory, so that they can be treated as additional
  // steps.
  bool taps_are_contiguous() const {
    const contraction_axis& axis = c.axes.back();
    return axis.phases.size() == 1 && axis.phases[0].taps == axis.window && axis.phases[0].window_first == 0 &&
           axis.phases[0].window_step == 1 && !axis.clipped() &&
           (axis.window == 1 ||
            (c.step_block == 0 && steps_are_contiguous() && axis.pitch * axis.tap_stride == c.steps * c.left_step &&
             c.right_tap == c.steps * c.right_step));
  }

  bool steps_are_contiguous() const { return c.left_step == neighbours_of(c.by_lane); }

  std::int64_t steps_at_once() const { return c.step_block ? c.step_block : c.steps; }

  Value ceil_div_positive(Value a, std::int64_t b) { return code.div(code.add(code.max(a, 0), b - 1), b); }

  // Calls accumulate() for the rows whose input position is inside the tensor. `position` is that of row 0.
  values accumulate_rows(Value position, const tile_shape& shape, Value left_offset, Value right_offset,
                         std::int64_t steps, values sums) {
    if (matrix) {
      multiply_matrices(left_offset, right_offset, steps);
      return sums;
    }
    // Contiguous rows that are read only once: prefetch the rows of the next tile, which come from memory.
    upcoming next;
    const bool dense = c.axes.back().window == 1 && steps_are_contiguous() && left.row_stride == c.steps * c.left_step;
    if (dense && c.panels_inside)
      next = {left.pointer, code.add(left_offset, c.rows * left.row_stride), c.rows, left.type};
    auto run = [&](row_range range) {
      return accumulate(code, shape, range, left, left_offset, right, right_offset, steps, c.unroll, accumulation, sums,
                        next);
    };
    if (ranges.size() == 1) return run(ranges[0]);
    const contraction_axis& axis = c.axes.back();
    Value first = code.min(ceil_div_positive(code.sub(code.constant(0), position), axis.stride), c.rows);
    Value end = code.min(valid_rows, ceil_div_positive(code.sub(code.constant(axis.in), position), axis.stride));
    if (!axis.clipped()) first = code.constant(0), end = valid_rows;
    std::function<values(std::size_t)> chain = [&](std::size_t i) -> values {
      if (i + 1 == ranges.size()) return run(ranges[i]);
      // An empty range can have any bounds, so compare its length.
      Value matches = ranges[i].first == ranges[i].last
                          ? Value(code.make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::sge, first, end))
                          : Value(code.make<mlir::arith::AndIOp>(code.equal(first, code.constant(ranges[i].first)),
                                                                 code.equal(end, code.constant(ranges[i].last))));
      return code.branch(matches, [&] { return run(ranges[i]); }, [&] { return chain(i + 1); });
    };
    return chain(0);
  }

  // Adds the products of `steps` steps to the sums in the matrix registers.
  void multiply_matrices(Value left_offset, Value right_offset, std::int64_t steps) {
    const auto bytes = [](element_type type) { return static_cast<std::int64_t>(storage_bytes(type, 1)); };
    code.loop(0, steps, matrix_steps, [&](Value k) {
      const Value left_at = code.add(left_offset, code.mul(k, left.step_stride)),
                  right_at = code.add(right_offset, code.mul(k, right.step_stride));
      matrix->add(code.address(left.pointer, left_at, left.type), left.row_stride * bytes(left.type),
                  code.address(right.pointer, right_at, right.type), right.step_stride * bytes(right.type));
    });
  }

  kernel_emitter& e;
  code_builder& code;
  const contraction& c;
  const element_type accumulation;
  // The most frequent range first.
  const std::vector<row_range> ranges;
  factor left, right;
  // One for each segment.
  std::vector<tile_writer> writers;
  std::optional<matrix_tile> matrix;
  Value batch, group, valid_rows;
  // Used if steps are processed in blocks.
  Value partials, first_step;
  values phase, outputs;
};

}  // namespace

void emit_contraction(kernel_emitter& e, const contraction& c) { contraction_emitter(e, c).emit(); }

}  // namespace kiln::cpu
