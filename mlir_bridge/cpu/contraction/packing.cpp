#include "mlir_bridge/cpu/contraction/packing.hpp"

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"

namespace kiln::cpu {

void pack_right(kernel_emitter& e, contraction& c, std::int64_t taps, const tile_shape& tile,
                const right_source& source) {
  const bool prepare = e.only_parameters(source.tensor);
  const element_type type = source.tensor.type().type;
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
        code_builder& code = e.code;
        Value destination = e.pointer(c.right);
        Value offset = code.mul(code.linearize(at, std::vector<std::int64_t>{c.groups, panels, taps, c.steps}), width);
        Value first = code.mul(at[1], width);
        auto copy = [&](Value column, std::int64_t lanes) {
          evaluator ev(e);
          values where = source.locate(at[0], at[2], at[3], code.add(first, column));
          Value elements = ev.at(source.tensor, ev.along(where, lanes, source.column_axis), lanes);
          if (source.counts) {
            Value columns = lanes == 1 ? code.add(first, column)
                                       : code.add(code.splat(code.add(first, column), lanes), code.lane_numbers(lanes));
            elements = code.select(source.counts(at[3], columns), elements, code.number(elements.getType(), 0));
          }
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

}  // namespace kiln::cpu
