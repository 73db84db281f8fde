#include "mlir_bridge/cpu/open_rows.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "mlir_bridge/codegen/open_sizes.hpp"

namespace kiln::cpu {

using codegen::any_multiple;

namespace {

// Assumed number of elements in a row of unknown length, for sizing work items.
constexpr std::int64_t usual_row = 128;
// Number of columns per work item.
constexpr std::int64_t column_block = 64;

std::int64_t usual_count(const dim& count) { return count.is_static() ? count.value() : usual_row; }

}  // namespace

open_rows::open_rows(kernel_emitter& e, std::vector<dim> sizes, const std::vector<std::int64_t>& axes,
                     element_type type)
    : e_(e), code_(e.code), sizes_(std::move(sizes)), type_(type) {
  auto combined = [&](std::size_t axis) {
    return std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end();
  };
  std::optional<std::size_t> last;
  for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
    if (sizes_[axis] != 1) last = axis;
    if (combined(axis)) count = count * sizes_[axis];
  }
  inner = !last || combined(*last);
  lane_axis = last.value_or(0);
  for (std::size_t axis = 0; axis < sizes_.size(); ++axis) {
    if (sizes_[axis] == 1 || axis == lane_axis) continue;
    (combined(axis) ? outer : kept_).push_back(axis);
  }
  row_size = last ? sizes_[lane_axis] : dim(1);
  lanes = e.lanes_for(type, inner ? codegen::known_bound(row_size) : column_block);
}

Value open_rows::count_as(element_type type) const {
  mlir::Type scalar = code_.scalar_type(type);
  if (mlir::isa<mlir::FloatType>(scalar)) return code_.make<mlir::arith::UIToFPOp>(scalar, e_.size(count));
  return e_.size(count);
}

void open_rows::parallel_rows(const std::string& name, std::int64_t cost,
                              const std::function<void(std::span<const Value>)>& body) const {
  std::vector<dim> items;
  for (std::size_t axis : kept_) items.push_back(sizes_[axis]);
  e_.parallel_open(name, items, cost * usual_count(count), body);
}

position open_rows::start(std::span<const Value> at) const {
  position where(sizes_.size(), axis_index{code_.constant(0), 0, {}, 0, 1, any_multiple});
  for (std::size_t i = 0; i < kept_.size(); ++i)
    where[kept_[i]] = {at[i], 0, {}, 0, codegen::known_bound(sizes_[kept_[i]]), 1};
  return where;
}

values open_rows::nest(position where, std::size_t depth, values state,
                       const std::function<values(const position&, values)>& body) const {
  if (depth == outer.size()) return body(where, std::move(state));
  const dim& size = sizes_[outer[depth]];
  return code_.loop(code_.constant(0), e_.size(size), 1, std::move(state),
                    [&](Value i, std::span<const Value> carried) {
                      position deeper = where;
                      deeper[outer[depth]] = {i, 0, {}, 0, codegen::known_bound(size), 1};
                      return nest(deeper, depth + 1, values(carried.begin(), carried.end()), body);
                    });
}

values open_rows::walk(std::span<const Value> at, std::int64_t copies, const values& initial, const visitor& visit,
                       const combiner& combine) const {
  const std::size_t width = initial.size();
  const Value size = e_.size(row_size);
  return nest(start(at), 0, initial, [&](const position& row, values entry) {
    auto step = [&](Value i, std::span<const Value> state) {
      position where = row;
      where[lane_axis] = {i, lanes > 1 ? 1 : 0, {}, 0, codegen::known_bound(row_size), lanes};
      return visit(where, {}, state);
    };
    values carried = entry;
    for (std::int64_t c = 1; c < copies; ++c) carried.insert(carried.end(), initial.begin(), initial.end());
    const std::int64_t stride = lanes * copies;
    const Value side_by_side = code_.mul(code_.div(size, stride), stride),
                whole = code_.mul(code_.div(size, lanes), lanes);
    carried = code_.loop(code_.constant(0), side_by_side, stride, carried, [&](Value i, std::span<const Value> state) {
      values next;
      for (std::int64_t c = 0; c < copies; ++c) {
        auto moved = step(code_.add(i, c * lanes), state.subspan(static_cast<std::size_t>(c) * width, width));
        next.insert(next.end(), moved.begin(), moved.end());
      }
      return next;
    });
    values joined(carried.begin(), carried.begin() + static_cast<std::ptrdiff_t>(width));
    for (std::int64_t c = 1; c < copies; ++c)
      joined = combine(joined, std::span(carried).subspan(static_cast<std::size_t>(c) * width, width));
    joined = code_.loop(side_by_side, whole, lanes, joined, step);
    if (codegen::known_factor(row_size) % lanes == 0) return joined;
    return code_.branch(
        code_.less(whole, size),
        [&] {
          const Value numbers = code_.add(code_.lane_numbers(lanes), whole), ends = code_.splat(size, lanes);
          position where = row;
          where[lane_axis].base = code_.constant(0);
          where[lane_axis].each = code_.min(numbers, code_.sub(ends, 1));
          where[lane_axis].high = codegen::known_bound(row_size);
          return visit(where, code_.less(numbers, ends), joined);
        },
        [&] { return joined; });
  });
}

void open_rows::write(std::span<const Value> at,
                      const std::function<void(const position&, std::int64_t lanes)>& visit) const {
  nest(start(at), 0, {}, [&](const position& row, values) {
    const bool divides = codegen::known_factor(row_size) % lanes == 0;
    open_span(e_, code_.constant(0), e_.size(row_size), lanes, lanes, divides).walk([&](const span_part& part) {
      position where = row;
      where[lane_axis] = {part.first, part.lanes > 1 ? 1 : 0, {}, 0, codegen::known_bound(row_size), part.multiple};
      visit(where, part.lanes);
    });
    return values{};
  });
}

values open_rows::sweep(const values& initial,
                        const std::function<values(Value offset, std::span<const Value>)>& visit) const {
  return code_.loop(code_.constant(0), e_.size(row_size), lanes, initial, visit);
}

void open_rows::parallel_columns(const std::string& name, std::int64_t cost,
                                 const std::function<void(const position&, std::int64_t lanes)>& body) const {
  std::vector<dim> items;
  for (std::size_t axis : kept_) items.push_back(sizes_[axis]);
  items.push_back((row_size + column_block - 1) / column_block);
  e_.parallel_open(name, items, cost * column_block * usual_count(count), [&](std::span<const Value> at) {
    const position row = start(at.first(at.size() - 1));
    const open_span span = span_of_block(e_, row_size, code_.mul(at.back(), column_block), column_block, type_);
    span.walk([&](const span_part& part) {
      position column = row;
      column[lane_axis] = {part.first, part.lanes > 1 ? 1 : 0, {}, 0, codegen::known_bound(row_size), part.multiple};
      body(column, part.lanes);
    });
  });
}

values open_rows::walk_column(const position& column, const values& initial,
                              const std::function<values(const position&, std::span<const Value>)>& visit) const {
  return nest(column, 0, initial, [&](const position& where, values state) { return visit(where, state); });
}

Value lane_indices(codegen::code_builder& code, const axis_index& index, std::int64_t lanes) {
  if (index.each) return index.each;
  if (lanes == 1) return index.base;
  return index.step ? code.add(code.splat(index.base, lanes), code.lane_numbers(lanes)) : code.splat(index.base, lanes);
}

}  // namespace kiln::cpu
