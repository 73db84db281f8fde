#include "mlir_bridge/cpu/contraction/open_panels.hpp"

#include "mlir_bridge/codegen/open_sizes.hpp"

namespace kiln::cpu {

open_panels::open_panels(kernel_emitter& e, const open_factor& factor, const tile_shape& tile)
    : e_(e),
      tile_(tile),
      count_((factor.columns + tile.columns() - 1) / tile.columns()),
      whole_(codegen::known_factor(factor.columns) % tile.columns() == 0),
      by_lane_(factor.by_lane) {
  code_builder& code = e.code;
  const bool prepare = factor.source.type().is_static() && e.only_parameters(factor.source);
  std::vector<dim> sizes = factor.batch, items = factor.batch;
  sizes.insert(sizes.end(), {count_ * factor.used, factor.steps / neighbours_of(by_lane_), tile.columns()});
  items.push_back(count_ * factor.used);
  packed_ = e.add_open_scratch(by_lane_ ? element_type::i32 : factor.source.type().type, sizes, prepare);
  e.parallel_open(
      "pack", items, tile.columns() * usual_size(factor.steps),
      [&](std::span<const Value> at) {
        const auto of_batch = at.first(at.size() - 1);
        if (whole_) return pack(factor, of_batch, at.back(), true);
        const Value end = code.mul(code.add(at.back(), 1), tile.columns());
        code.branch(
            code.less(e.size(factor.columns), end),
            [&] {
              pack(factor, of_batch, at.back(), false);
              return values{};
            },
            [&] {
              pack(factor, of_batch, at.back(), true);
              return values{};
            });
      },
      prepare);
}

Value open_panels::columns_of(const open_factor& factor, std::span<const Value> of_batch, Value step, Value column,
                              bool full) const {
  code_builder& code = e_.code;
  evaluator ev(e_);
  position from =
      ev.along(factor.locate(of_batch, step, column), tile_.lanes, static_cast<std::int64_t>(factor.column_axis));
  if (!full) {
    const Value each =
        e_.min(code.add(code.splat(column, tile_.lanes), code.lane_numbers(tile_.lanes)), factor.columns - 1);
    axis_index& index = from[factor.column_axis];
    const Value first = factor.locate(of_batch, step, code.constant(0))[factor.column_axis];
    index = tile_.lanes == 1 ? axis_index{code.add(each, first), 0, {}}
                             : axis_index{code.constant(0), 0, code.add(each, first)};
  }
  const Value elements = ev.at(factor.source, from, tile_.lanes);
  return factor.counts ? code.select(factor.counts(step), elements, code.number(elements.getType(), 0)) : elements;
}

void open_panels::pack(const open_factor& factor, std::span<const Value> of_batch, Value panel, bool full) const {
  code_builder& code = e_.code;
  const std::int64_t neighbours = neighbours_of(by_lane_);
  code.loop(code.constant(0), e_.size(factor.steps / neighbours), 1, [&](Value step) {
    for (std::int64_t v = 0; v < tile_.vectors; ++v) {
      const Value column = code.add(code.mul(panel, tile_.columns()), v * tile_.lanes);
      Value elements;
      if (!by_lane_) elements = columns_of(factor, of_batch, step, column, full);
      for (std::int64_t i = 0; by_lane_ && i < neighbours; ++i) {
        const Value computed = columns_of(factor, of_batch, code.add(code.mul(step, neighbours), i), column, full);
        const Value bits = bits_of(code, computed, factor.source.type().type);
        const Value shifted = code.make<mlir::arith::ShLIOp>(bits, code.integer(bits.getType(), 32 / neighbours * i));
        elements = elements ? Value(code.make<mlir::arith::OrIOp>(elements, shifted)) : shifted;
      }
      evaluator ev(e_);
      ev.store(packed_, ev.along(joined(of_batch, {panel, step, code.constant(v * tile_.lanes)}), tile_.lanes),
               elements);
    }
  });
}

open_right open_panels::panel(std::span<const Value> of_batch, Value panel) const {
  const Value zero = e_.code.constant(0);
  return {e_.pointer(packed_), packed_.type, offset_in(e_, packed_, joined(of_batch, {panel, zero, zero})),
          e_.code.constant(tile_.columns()), by_lane_};
}

std::int64_t usual_size(const dim& size) { return size.is_static() ? size.value() : 64; }

Value offset_in(kernel_emitter& e, const buffer& memory, std::span<const Value> at) {
  const auto strides = memory.strides();
  Value offset = e.code.constant(0);
  for (std::size_t i = 0; i < at.size(); ++i) offset = e.code.add(offset, e.mul(at[i], strides[i]));
  return offset;
}

values joined(std::span<const Value> first, std::initializer_list<Value> rest) {
  values all(first.begin(), first.end());
  all.insert(all.end(), rest);
  return all;
}

}  // namespace kiln::cpu
