#include "mlir_bridge/cpu/contraction/packing.hpp"

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/tile.hpp"

namespace kiln::cpu {

namespace {

// Loads a vector of columns from the source; invalid elements become zero.
Value load_columns(kernel_emitter& e, const right_source& source, Value group, Value tap, Value step, Value column,
                   std::int64_t lanes) {
  code_builder& code = e.code;
  evaluator ev(e);
  values where = source.locate(group, tap, step, column);
  Value elements = ev.at(source.tensor, ev.along(where, lanes, source.column_axis), lanes);
  if (!source.counts) return elements;
  Value columns = lanes == 1 ? column : code.add(code.splat(column, lanes), code.lane_numbers(lanes));
  return code.select(source.counts(step, columns), elements, code.number(elements.getType(), 0));
}

// Emits the stage that fills c.right with elements of `type`. `load` returns a vector of columns.
void emit_packing(kernel_emitter& e, contraction& c, std::int64_t taps, const tile_shape& tile, element_type type,
                  bool prepare,
                  const std::function<Value(std::span<const Value> at, Value column, std::int64_t lanes)>& load) {
  const std::int64_t width = tile.columns();
  c.segments = packed_segments(tile, c.columns);
  const std::int64_t panels = c.panels();
  c.right = e.add_scratch(type, {c.groups, panels, taps, c.steps, width}, prepare);
  c.right_step = width;
  c.right_tap = c.steps * width;
  c.right_panel = taps * c.right_tap;
  c.right_group = panels * c.right_panel;
  e.parallel(
      "pack", {c.groups, panels, taps, c.steps}, width,
      [&](std::span<const Value> at) {
        e.keep_loops();
        code_builder& code = e.code;
        Value destination = e.pointer(c.right);
        Value offset = code.mul(code.linearize(at, std::vector<std::int64_t>{c.groups, panels, taps, c.steps}), width);
        Value first = code.mul(at[1], width);
        auto copy = [&](Value column, std::int64_t lanes) {
          Value elements = load(at, code.add(first, column), lanes);
          code.store(destination, code.add(offset, column), type, elements);
        };
        auto zero = [&](Value column) {
          code.store(destination, code.add(offset, column), type, code.number(code.scalar_type(type), 0));
        };
        auto whole = [&] {
          for (std::int64_t v = 0; v < tile.vectors; ++v) copy(code.constant(v * tile.lanes), tile.lanes);
          return values{};
        };
        auto partial = [&] {
          const std::int64_t there = c.columns % width;
          code.loop(0, there, 1, [&](Value column) { copy(column, 1); });
          code.loop(there, width, 1, zero);
          return values{};
        };
        if (c.columns % width == 0) whole();
        else code.branch(code.equal(at[1], code.constant(panels - 1)), partial, whole);
      },
      prepare);
}

}  // namespace

void pack_right(kernel_emitter& e, contraction& c, std::int64_t taps, const tile_shape& tile,
                const right_source& source) {
  // Floats of 8 bits are converted once, here: no processor converts them quickly.
  const element_type type = source.tensor.type().type;
  const bool wide = is_float(type) && storage_bits(type) == 8;
  emit_packing(e, c, taps, tile, wide ? accumulation_type(type) : type, e.only_parameters(source.tensor),
               [&](std::span<const Value> at, Value column, std::int64_t lanes) {
                 return load_columns(e, source, at[0], at[2], at[3], column, lanes);
               });
}

void pack_right_lanes(kernel_emitter& e, contraction& c, std::int64_t taps, std::int64_t depth, const tile_shape& tile,
                      const right_source& source) {
  code_builder& code = e.code;
  const std::int64_t neighbours = c.by_lane->neighbours;
  const element_type type = source.tensor.type().type;
  emit_packing(e, c, taps, tile, element_type::i32, e.only_parameters(source.tensor),
               [&](std::span<const Value> at, Value column, std::int64_t lanes) {
                 mlir::Type wide = code.type(element_type::i32, lanes);
                 Value joined = code.integer(wide, 0);
                 for (std::int64_t i = 0; i < neighbours; ++i) {
                   Value k = code.add(code.mul(at[3], neighbours), i);
                   Value bits = bits_of(
                       code, load_columns(e, source, at[0], at[2], code.min(k, depth - 1), column, lanes), type);
                   if (c.steps * neighbours != depth)
                     bits = code.select(code.less(k, code.constant(depth)), bits, code.integer(wide, 0));
                   Value shifted = code.make<mlir::arith::ShLIOp>(bits, code.integer(wide, 32 / neighbours * i));
                   joined = code.make<mlir::arith::OrIOp>(joined, shifted);
                 }
                 return joined;
               });
}

}  // namespace kiln::cpu
