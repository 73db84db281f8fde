#include "mlir_bridge/kinds/attention/gpu/split_keys.hpp"

#include <algorithm>
#include <limits>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/last_workgroup.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

// Parts whose loads are in flight at the same time.
constexpr std::int64_t together = 16;
// Depths of a thread that combines parts.
constexpr std::int64_t lanes = 4;
// Bytes that all parts found for a tile of rows, from which on one workgroup would take longer to read them than
// another launch takes.
constexpr std::int64_t least_apart_bytes = 512 << 10;
constexpr double lowest = -std::numeric_limits<double>::infinity();

}  // namespace

row_part no_keys(code_builder& code, std::int64_t count) {
  mlir::Type f32 = code.builder.getF32Type();
  return {code.number(f32, lowest), code.number(f32, 0), code.number(code_builder::with_lanes(f32, count), 0)};
}

row_part join_parts(code_builder& code, const row_part& so_far, std::span<const row_part> parts) {
  mlir::Type f32 = code.builder.getF32Type();
  row_part all = so_far;
  for (const row_part& part : parts) all.top = code.make<arith::MaxNumFOp>(all.top, part.top);
  // If no part has seen a key yet, subtract 0, because -inf - (-inf) is NaN.
  Value shift = code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, all.top, code.number(f32, lowest)),
                            code.number(f32, 0), all.top);
  auto weight = [&](Value of) -> Value { return power_of_two(code, code.make<arith::SubFOp>(of, shift)); };
  const std::int64_t count = code_builder::lanes_of(so_far.result);
  Value old = weight(so_far.top);
  all.sum = code.make<arith::MulFOp>(so_far.sum, old),
  all.result = code.make<arith::MulFOp>(so_far.result, code.splat(old, count));
  for (const row_part& part : parts) {
    Value w = weight(part.top);
    all.sum = code.fma(part.sum, w, all.sum);
    all.result = code.fma(part.result, code.splat(w, count), all.result);
  }
  return all;
}

void store_row(kernel_emitter& e, const attention_problem& problem, const attention_problem::place& at, Value row,
               Value depth, const row_part& all) {
  code_builder& code = e.code;
  const element_type type = problem.query.type().type;
  const std::int64_t count = code_builder::lanes_of(all.result);
  Value result = code.make<arith::DivFOp>(all.result, code.splat(all.sum, count));
  evaluator ev(e);
  ev.bind(e.anchor_result(), code.to_compute(code.to_storage(result, type), type));
  ev.store_outputs(problem.of_output(code, at, row, depth, count, count), count);
}

split_keys::split_keys(kernel_emitter& e, const attention_problem& problem, std::int64_t parts, std::int64_t tile_rows)
    : e_(e),
      p_(problem),
      parts_(parts),
      tile_rows_(tile_rows),
      tiles_(ceil_div(p_.rows, tile_rows)),
      apart_(parts * std::min(tile_rows, p_.rows) * p_.n.value_depth * 4 >= least_apart_bytes &&
             p_.queries.is_static()),
      results_(e.add_scratch(element_type::f32, {p_.n.batch, p_.n.key_heads, parts, p_.rows, p_.n.value_depth})),
      states_(e.add_scratch(element_type::f32, {p_.n.batch, p_.n.key_heads, parts, p_.rows, 2})) {
  if (!apart_) counters_ = e.add_zeroed_scratch(element_type::i32, {p_.n.batch, p_.n.key_heads, tiles_});
}

std::int64_t split_keys::worthwhile(const kernel_emitter& e, const kernel_configuration& configuration,
                                    const attention_problem& problem, std::int64_t workgroups, std::int64_t key_block) {
  const std::int64_t blocks = ceil_div(problem.n.keys, key_block), most = std::clamp<std::int64_t>(blocks, 1, 64);
  // Combining parts costs as much as some blocks, so it does not pay off for few of them.
  const std::int64_t units = e.target.gpu.compute_units;
  std::int64_t parts =
      blocks < 8 || 2 * workgroups > units ? 1 : std::min(ceil_div(2 * units, workgroups), ceil_div(blocks, 2));
  parts = choose(configuration, "key_parts", parts);
  return std::clamp<std::int64_t>(parts, 1, most);
}

Value split_keys::state_offset(const place& at) {
  code_builder& code = e_.code;
  return code.add(
      code.mul(code.add(code.mul(code.add(code.mul(at.batch, p_.n.key_heads), at.key_head), parts_), at.part), p_.rows),
      at.row);
}

void split_keys::store_state(const place& at, Value top, Value sum) {
  e_.code.store(e_.pointer(states_), e_.code.mul(state_offset(at), 2), element_type::f32,
                e_.code.from_lanes(std::array{top, sum}), 2);
}

void split_keys::store_result(const place& at, Value depth, std::span<const Value> elements) {
  code_builder& code = e_.code;
  Value offset = code.add(code.mul(state_offset(at), p_.n.value_depth), depth);
  const auto count = static_cast<std::int64_t>(elements.size());
  for (std::int64_t i = 0; i < count; i += lanes)
    code.store(e_.pointer(results_), code.add(offset, i), element_type::f32,
               code.from_lanes(elements.subspan(static_cast<std::size_t>(i), static_cast<std::size_t>(lanes))), lanes);
}

void split_keys::join_row(const attention_problem::place& at, const place& first, Value row, Value depth) {
  code_builder& code = e_.code;
  Value results = e_.pointer(results_), states = e_.pointer(states_);
  // Issue all loads first.
  auto meet = [&](Value from, std::int64_t count, const row_part& so_far) {
    std::vector<row_part> parts;
    for (std::int64_t i = 0; i < count; ++i) {
      Value offset = state_offset({first.batch, first.key_head, code.add(from, i), row});
      Value state = code.load(states, code.mul(offset, 2), element_type::f32, 2, 2);
      parts.push_back(
          {code.lane(state, 0), code.lane(state, 1),
           code.load(results, code.add(code.mul(offset, p_.n.value_depth), depth), element_type::f32, lanes, lanes)});
    }
    return join_parts(code, so_far, parts);
  };
  const std::int64_t whole = parts_ / together * together;
  row_part all = no_keys(code, lanes);
  if (whole) {
    values joined = code.loop(code.constant(0), code.constant(whole), together, {all.top, all.sum, all.result},
                              [&](Value from, std::span<const Value> carried) {
                                row_part next = meet(from, together, {carried[0], carried[1], carried[2]});
                                return values{next.top, next.sum, next.result};
                              });
    all = {joined[0], joined[1], joined[2]};
  }
  if (whole < parts_) all = meet(code.constant(whole), parts_ - whole, all);
  store_row(e_, p_, at, row, depth, all);
}

void split_keys::join(workgroup& group, const place& first, Value tile, Value memory) {
  if (apart_) return;
  code_builder& code = e_.code;
  Value counter = code.add(code.mul(code.add(code.mul(first.batch, p_.n.key_heads), first.key_head), tiles_), tile);
  e_.pointer(results_), e_.pointer(states_);
  when_last(e_, group, *counters_, counter, parts_, memory, [&] {
    auto at = p_.at(code, first.batch, first.key_head);
    const std::int64_t of_row = p_.n.value_depth / lanes;
    Value rows = code.min(code.sub(code.constant(p_.rows), first.row), tile_rows_);
    code.loop(group.thread(), code.mul(rows, of_row), group.threads(), [&](Value item) {
      Value row = code.add(first.row, code.div(item, of_row)), depth = code.mul(code.rem(item, of_row), lanes);
      join_row(at, first, row, depth);
    });
  });
}

void split_keys::join_apart() {
  if (!apart_) return;
  constexpr std::int64_t threads = 256;
  code_builder& code = e_.code;
  const std::int64_t of_row = p_.n.value_depth / lanes, items = p_.rows * of_row;
  workgroup group(e_, "join", {ceil_div(items, threads), p_.n.key_heads, p_.n.batch}, threads);
  const Value item = code.add(code.mul(group.block(0), threads), group.thread());
  code.when(code.less(item, code.constant(items)), [&] {
    const place first{group.block(2), group.block(1), nullptr, nullptr};
    const Value row = code.div(item, of_row), depth = code.mul(code.rem(item, of_row), lanes);
    join_row(p_.at(code, first.batch, first.key_head), first, row, depth);
  });
  group.close();
}

}  // namespace kiln::gpu
