#include "mlir_bridge/codegen/reduction_space.hpp"

#include <algorithm>
#include <numeric>

#include "mlir_bridge/codegen/reduction_axes.hpp"

namespace kiln::codegen {

std::int64_t vectors_abreast(std::int64_t extent, std::int64_t lanes) {
  for (std::int64_t n : {4, 2})
    if (extent % (lanes * n) == 0) return n;
  return 1;
}

reduction_space::reduction_space(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes)
    : e_(e), code_(e.code), dims_(kernel_emitter::dims(input)) {
  const reduction_axes found(e, input, axes);
  inner = found.inner;
  kept = found.kept;
  for (const dim& size : found.kept_sizes) kept_dims.push_back(size.value());
  lane_axis = found.lane_axis;
  lane_extent = divided_ = lane_high_ = found.lane_size.value();
  cuts_ = found.cuts;
  count = found.count.value();
  runs_ = found.runs;
  for (const dim& size : found.run_sizes) run_extents_.push_back(size.value());
}

position reduction_space::start(std::span<const Value> at) const {
  position where(dims_.size(), axis_index{code_.constant(0), 0, {}, 0, 1, any_multiple});
  for (std::size_t i = 0; i < kept.size(); ++i) where[kept[i]] = {at[i], 0, {}, 0, kept_dims[i], 1};
  return where;
}

void reduction_space::set(position& where, std::size_t run, Value base, std::int64_t step) const {
  where[runs_[run].back()] = {base, step, {}, 0, run_extents_[run], 1};
}

values reduction_space::nest(position where, std::size_t run, std::size_t end, values state,
                             const std::function<values(const position&, values)>& body) {
  if (run == end) return body(where, std::move(state));
  return code_.loop(0, run_extents_[run], 1, std::move(state), [&](Value i, std::span<const Value> carried) {
    position deeper = where;
    set(deeper, run, i, 0);
    return nest(deeper, run + 1, end, values(carried.begin(), carried.end()), body);
  });
}

values reduction_space::walk_row(std::span<const Value> at, std::int64_t lanes, std::int64_t copies,
                                 const values& initial, const visitor& visit, const combiner& combine) {
  if (runs_.empty()) return visit(start(at), 1, {}, initial);
  std::size_t last = runs_.size() - 1, width = initial.size();
  std::int64_t extent = lane_extent, stride = lanes * copies;
  if (extent < stride) copies = 1, stride = lanes;
  return nest(start(at), 0, last, initial, [&](const position& row, values entry) {
    auto step = [&](Value i, Value valid, std::span<const Value> state) {
      position where = row;
      set(where, last, i, lanes > 1 ? 1 : 0);
      return visit(where, lanes, valid, state);
    };
    // In every row of an outer run, the copies except the first start from the neutral state.
    values carried = entry;
    for (std::int64_t c = 1; c < copies; ++c) carried.insert(carried.end(), initial.begin(), initial.end());
    std::int64_t whole = extent / stride * stride;
    carried = code_.loop(0, whole, stride, carried, [&](Value i, std::span<const Value> state) {
      values next;
      for (std::int64_t c = 0; c < copies; ++c) {
        auto moved = step(code_.add(i, c * lanes), {}, state.subspan(static_cast<std::size_t>(c) * width, width));
        next.insert(next.end(), moved.begin(), moved.end());
      }
      return next;
    });
    values joined(carried.begin(), carried.begin() + static_cast<std::ptrdiff_t>(width));
    for (std::int64_t c = 1; c < copies; ++c)
      joined = combine(joined, std::span(carried).subspan(static_cast<std::size_t>(c) * width, width));
    std::int64_t vectors = extent / lanes * lanes;
    joined = code_.loop(whole, vectors, lanes, joined,
                        [&](Value i, std::span<const Value> state) { return step(i, {}, state); });
    if (vectors == extent) return joined;
    // The last vector overlaps elements that were visited before; these first lanes are masked.
    std::int64_t fresh = extent - vectors;
    Value numbers = code_.lane_numbers(lanes);
    Value valid = code_.make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::sge, numbers,
                                                  code_.integer(numbers.getType(), lanes - fresh));
    return step(code_.constant(extent - lanes), valid, joined);
  });
}

void reduction_space::write_row(std::span<const Value> at, std::int64_t lanes,
                                const std::function<void(const position&)>& write) {
  if (runs_.empty()) return write(start(at));
  std::size_t last = runs_.size() - 1;
  nest(start(at), 0, last, {}, [&](const position& row, values) {
    code_.loop(0, lane_extent, lanes, [&](Value i) {
      position where = row;
      set(where, last, lane_extent % lanes ? code_.min(i, lane_extent - lanes) : i, lanes > 1 ? 1 : 0);
      write(where);
    });
    return values{};
  });
}

values reduction_space::walk_column(std::span<const Value> at, Value lane, std::int64_t lanes, const values& initial,
                                    const visitor& visit) {
  position where = start(at);
  where[lane_axis] = {lane, lanes > 1 ? 1 : 0, {}, lane_low_, lane_high_, 1};
  return nest(where, 0, runs_.size(), initial,
              [&](const position& p, values state) { return visit(p, lanes, {}, state); });
}

void reduction_space::divide_by_operand(element_type type) {
  // Each operand is code of its own. Densely connected networks concatenate dozens of tensors.
  constexpr std::size_t most_operands = 64;
  const std::int64_t common =
      std::accumulate(cuts_.begin(), cuts_.end(), lane_extent, std::gcd<std::int64_t, std::int64_t>);
  if (cuts_.empty() || cuts_.size() >= most_operands || common % e_.lanes_for(type, lane_extent)) return;
  divided_ = common;
  segments_ = divide_axis(e_, lane_extent, cuts_, [](std::int64_t) { return true; });
}

values reduction_space::walk_operands(Value first, const std::function<values()>& walk) {
  if (segments_.empty()) return walk();
  values result = walk_operands(first, 0, segments_.size(), walk);
  lane_low_ = 0, lane_high_ = lane_extent;
  return result;
}

values reduction_space::walk_operands(Value first, std::size_t begin, std::size_t end,
                                      const std::function<values()>& walk) {
  if (begin + 1 == end) {
    lane_low_ = segments_[begin].low, lane_high_ = segments_[begin].high;
    return walk();
  }
  const std::size_t middle = (begin + end) / 2;
  return code_.branch(
      code_.less(first, code_.constant(segments_[middle].low)),
      [&] { return walk_operands(first, begin, middle, walk); },
      [&] { return walk_operands(first, middle, end, walk); });
}

void reduction_space::parallel_columns(const std::string& name, element_type type, std::int64_t cost,
                                       const std::function<void(std::span<const Value>, Value, std::int64_t)>& body) {
  // Divides the lane axis into blocks of whole vectors, each with a parallel index of its own. The last block also
  // takes the remainder.
  std::int64_t lanes = e_.lanes_for(type, lane_extent);
  std::int64_t block = lanes * vectors_abreast(divided_, lanes);
  std::int64_t blocks = std::max<std::int64_t>(1, lane_extent / block);
  auto dims = kept_dims;
  dims.push_back(blocks);
  e_.parallel(name, dims, block * cost, [&](std::span<const Value> at) {
    auto row = at.first(at.size() - 1);
    Value low = code_.mul(at.back(), block);
    if (lane_extent % block == 0) return body(row, low, block);
    Value high = code_.select(code_.equal(at.back(), code_.constant(blocks - 1)), code_.constant(lane_extent),
                              code_.add(low, block));
    code_.loop(low, high, lanes, [&](Value i) { body(row, code_.min(i, code_.sub(high, lanes)), lanes); });
  });
}

}  // namespace kiln::codegen
