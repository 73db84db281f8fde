// reduce and arg_reduce. If few results combine many elements, several workgroups share each result: each stores a
// partial result to scratch, and a second stage, or the last of them, combines these in a fixed order.
#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/reduction_rule.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/empty_sums.hpp"
#include "mlir_bridge/gpu/last_workgroup.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/gpu/row_team.hpp"
#include "mlir_bridge/kinds/reduce/generators.hpp"

namespace kiln::gpu {

namespace {

// The differences between reduce and arg_reduce: a state of one or two values, how elements are added to it, and how it
// becomes the result.
struct reduction {
  std::string name;
  value input;
  std::vector<std::int64_t> axes;
  bool keep_dims;
  // Element types of the state in scratch.
  std::vector<element_type> state;
  std::function<values(std::int64_t lanes)> start;
  std::function<values(const row_team&, const row_team::place&, Value x, std::span<const Value>)> meet;
  row_team::combiner join;
  std::function<Value(std::span<const Value>, const row_team&)> finish;
  // Convert the state to a form that combines in one instruction, and back. Null if no conversion is needed.
  std::function<values(std::span<const Value>)> pack = {}, unpack = {};
  row_team::combiner join_packed = {};
};

// Returns the total of packed states.
values total_of(const reduction& r, values state,
                const std::function<values(values, const row_team::combiner&)>& total) {
  if (!r.pack) return total(std::move(state), r.join);
  return r.unpack(total(r.pack(state), r.join_packed));
}

namespace arith = mlir::arith;

Value flip_negative(code_builder& code, Value bits) {
  Value flipped = code.make<arith::XOrIOp>(bits, code.integer(bits.getType(), 0x7fffffff));
  return code.select(code.less(bits, code.integer(bits.getType(), 0)), flipped, bits);
}

// Maps an f32 to an i32 with the same order, with NaN at the preferred end. A maximum of floats that propagates NaN
// takes several instructions, one of integers a single one.
Value ordered_bits(code_builder& code, Value x, bool nan_is_largest) {
  mlir::Type integer = code_builder::with_lanes(code.builder.getI32Type(), code_builder::lanes_of(x));
  Value bits = flip_negative(code, code.make<arith::BitcastOp>(integer, x));
  Value nan = code.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
  return code.select(nan, code.integer(integer, nan_is_largest ? 0x7fffffff : -0x7fffffff - 1), bits);
}

Value from_ordered_bits(code_builder& code, Value bits) {
  return code.make<arith::BitcastOp>(code_builder::with_lanes(code.builder.getF32Type(), code_builder::lanes_of(bits)),
                                     flip_negative(code, bits));
}

void store_result(kernel_emitter& e, const reduction& r, const position& where, Value result, std::int64_t lanes) {
  evaluator ev(e);
  ev.bind(e.anchor_result(), result);
  ev.store_outputs(reduced_position(e.code, where, r.axes, r.keep_dims), lanes);
}

// A wave combines the partial results [splits, results] of the result `own`.
values join_wave(kernel_emitter& e, const reduction& r, const std::vector<buffer>& partials, workgroup& group,
                 Value own) {
  auto& code = e.code;
  const std::int64_t splits = partials[0].sizes[0].value(), wave = e.target.gpu.wave;
  values state;
  for (std::int64_t first = 0; first < splits; first += wave) {
    Value split = code.add(group.lane(), first),
          valid = splits - first < wave ? code.less(split, code.constant(splits)) : Value();
    Value at = code.add(e.mul(valid ? code.min(split, splits - 1) : split, partials[0].sizes[1]), own);
    values other, start = r.start(1);
    for (std::size_t i = 0; i < partials.size(); ++i) {
      Value x = code.load(e.pointer(partials[i]), at, r.state[i], 1);
      other.push_back(valid ? code.select(valid, x, start[i]) : x);
    }
    state = state.empty() ? other : r.join(state, other);
  }
  return total_of(
      r, state, [&](values v, const row_team::combiner& combine) { return group.reduce_wave(std::move(v), combine); });
}

// Stores the result with this number.
void store_joined(kernel_emitter& e, const reduction& r, const row_team& team, Value result, const values& state) {
  const reduction_axes& space = team.space;
  std::vector<dim> dims = space.kept_sizes;
  if (!space.inner) dims.push_back(space.lane_size);
  values digits = e.delinearize(result, dims);
  position where = space.start(e.code, std::span(digits).first(space.kept.size()));
  if (!space.inner) where[space.lane_axis] = {digits.back(), 0, {}, 0, known_bound(space.lane_size), 1};
  store_result(e, r, where, r.finish(state, team), 1);
}

// The second stage: a wave for each result.
void join_partials(kernel_emitter& e, const reduction& r, const std::vector<buffer>& partials, const row_team& team) {
  auto& code = e.code;
  const std::int64_t wave = e.target.gpu.wave;
  const dim& results = partials[0].sizes[1];
  std::int64_t threads = 4 * wave, per_group = threads / wave;
  workgroup group(e, "join", (results + per_group - 1) / per_group, threads);
  Value result = code.add(code.mul(group.block(), per_group), group.wave()), own = e.min(result, results - 1);
  const values state = join_wave(e, r, partials, group, own);
  code.when(
      code.make<mlir::arith::AndIOp>(code.equal(group.lane(), code.constant(0)), code.less(result, e.size(results)))
          .getResult(),
      [&] { store_joined(e, r, team, result, state); });
  group.close();
}

// Instead of a second stage: the last workgroup of those that share a result combines the partial results of it.
void join_as_last(kernel_emitter& e, const reduction& r, const std::vector<buffer>& partials, row_team& team,
                  const buffer& counters, Value result) {
  auto& code = e.code;
  workgroup& group = team.group();
  for (const buffer& partial : partials) e.pointer(partial);
  when_last(e, group, counters, result, team.splits(), group.lds(4), [&] {
    code.when(code.less(group.thread(), code.constant(e.target.gpu.wave)), [&] {
      const values state = join_wave(e, r, partials, group, result);
      code.when(code.equal(group.lane(), code.constant(0)), [&] { store_joined(e, r, team, result, state); });
    });
  });
}

// Returns the largest number of workgroups that can share a result such that each has work.
std::int64_t most_splits(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes) {
  const row_team team(e, input, axes);
  if (!input.type().is_static()) return 1;
  return std::clamp<std::int64_t>(team.space.count.value() / (team.inner() ? team.lanes() : 1) / 8, 1, 256);
}

std::vector<candidate> reduction_space_of(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> shares;
  if (input.type().element_count() == 0) return {};
  for (std::int64_t splits = 2; splits <= most_splits(e, input, axes); splits *= 2) shares.push_back(splits);
  if (shares.empty()) return row_team_space(e, input, axes, /*passes=*/1);
  return row_team_space(e, input, axes, /*passes=*/1, shares);
}

// `splits` workgroups share each result.
void emit_reduction(kernel_emitter& e, const reduction& r, const kernel_configuration& configuration,
                    std::int64_t splits) {
  auto& code = e.code;
  row_team team(e, configuration, r.input, r.axes, splits);
  std::vector<buffer> partials;
  const dim results =
      std::accumulate(team.space.kept_sizes.begin(), team.space.kept_sizes.end(), dim(1), std::multiplies<>()) *
      (team.inner() ? dim(1) : team.space.lane_size);
  if (team.splits() > 1)
    for (element_type type : r.state) partials.push_back(e.add_open_scratch(type, {team.splits(), results}));
  // Few elements of an open number are not worth another launch.
  std::optional<buffer> counters;
  if (!partials.empty() && team.inner() && results.is_static() && !r.input.type().is_static())
    counters = e.add_zeroed_scratch(element_type::i32, {results.value()});
  team.open(r.name);
  values state = team.walk(r.start(team.lanes()), [&](const row_team::place& at, std::span<const Value> s) {
    evaluator ev(e);
    return r.meet(team, at, ev.at(r.input, at.where, team.lanes()), s);
  });
  state = total_of(r, state,
                   [&](values v, const row_team::combiner& combine) { return team.total(std::move(v), combine); });
  // The number of a result: kept axes, then the columns.
  const auto number_of = [&](const position& where) {
    values digits;
    for (std::size_t axis : team.space.kept) digits.push_back(where[axis].base);
    std::vector<dim> dims = team.space.kept_sizes;
    if (!team.inner()) digits.push_back(where[team.space.lane_axis].base), dims.push_back(team.space.lane_size);
    Value linear = code.constant(0);
    for (std::size_t i = 0; i < dims.size(); ++i) linear = code.add(e.mul(linear, dims[i]), digits[i]);
    return linear;
  };
  team.when_leader([&] {
    position where = team.total_position();
    std::int64_t lanes = team.total_lanes();
    if (partials.empty()) return store_result(e, r, where, r.finish(state, team), lanes);
    Value linear = number_of(where), at = code.add(e.mul(team.split(), results), linear);
    for (std::size_t i = 0; i < partials.size(); ++i)
      code.store(e.pointer(partials[i]), at, r.state[i], state[i], lanes);
  });
  if (counters) join_as_last(e, r, partials, team, *counters, number_of(team.total_position()));
  team.close();
  if (!partials.empty() && !counters) join_partials(e, r, partials, team);
}

void emit_reduction(kernel_emitter& e, const reduction& r) {
  if (r.input.type().elements() == 0)
    throw error(error_kind::unsupported,
                r.name + " of an empty tensor (" + r.input.type().str() + ") has no GPU code; fold it ahead of time");
  const std::int64_t wanted = row_team(e, r.input, r.axes).wanted_splits(),
                     splits = std::clamp<std::int64_t>(choose(e.configuration, "splits", wanted), 1,
                                                       std::max(wanted, most_splits(e, r.input, r.axes)));
  emit_reduction(e, r, e.configuration, splits);
}

// Reductions of open sizes. Few results of many elements have a version in which several workgroups share each result.
void emit_open_reduction(kernel_emitter& e, const reduction& r) {
  constexpr std::int64_t splits = 64;
  // The threads of such a workgroup along a row.
  constexpr std::int64_t team = 128;
  // Integers are mostly masks and shapes of few elements.
  const dim many = is_float(r.input.type().type) ? row_team(e, r.input, r.axes).shares_results() : dim(0);
  if (many == 0) return emit_reduction(e, r);
  const dim before = e.used;
  kernel_configuration configuration = e.configuration;
  configuration.try_emplace("team", team);
  e.used = before * many;
  emit_reduction(e, r, configuration, splits);
  e.used = before * (1 - many);
  if (many != 1) emit_reduction(e, r, e.configuration, 1);
  e.used = before;
}

}  // namespace

std::vector<candidate> reduce_space(kernel_emitter& e) {
  return reduction_space_of(e, e.anchor()->inputs()[0], e.anchor()->op().get_if<reduce>()->axes);
}

std::vector<candidate> arg_reduce_space(kernel_emitter& e) {
  value input = e.anchor()->inputs()[0];
  return reduction_space_of(e, input,
                            {normalize_axis(e.anchor()->op().get_if<arg_reduce>()->axis, input.type().rank())});
}

namespace {

// Calls emit() with the reduction.
void with_reduce(kernel_emitter& e, void (*emit)(kernel_emitter&, const reduction&)) {
  const auto& op = *e.anchor()->op().get_if<reduce>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  reduction_rule rule(op.kind, input.type().type);
  reduction r{"reduce", input, op.axes, op.keep_dims, {compute_type(rule.type)}, {}, {}, {}, {}};
  r.start = [&](std::int64_t lanes) { return values{rule.start(code, lanes)}; };
  r.meet = [&](const row_team& team, const row_team::place& at, Value x, std::span<const Value> state) {
    return values{rule.combine(code, state[0], team.masked(at, rule.widen(code, x), rule.start(code, team.lanes())))};
  };
  r.join = [&](std::span<const Value> a, std::span<const Value> b) { return values{rule.combine(code, a[0], b[0])}; };
  r.finish = [&](std::span<const Value> state, const row_team& team) {
    const dim& count = team.space.count;
    if (count.is_static() || op.kind != reduction_kind::mean)
      return rule.finish(code, state[0], count.is_static() ? count.value() : 1);
    return rule.finish_mean(code, state[0], team.count_as(rule.type));
  };
  if (is_float(rule.type) && compute_type(rule.type) == element_type::f32 &&
      (op.kind == reduction_kind::max || op.kind == reduction_kind::min)) {
    r.pack = [&](std::span<const Value> state) {
      return values{ordered_bits(code, state[0], op.kind == reduction_kind::max)};
    };
    r.unpack = [&](std::span<const Value> state) { return values{from_ordered_bits(code, state[0])}; };
    r.join_packed = [&](std::span<const Value> a, std::span<const Value> b) {
      return values{op.kind == reduction_kind::max ? code.max(a[0], b[0]) : code.min(a[0], b[0])};
    };
  }
  emit(e, r);
}

}  // namespace

void emit_reduce(kernel_emitter& e) { with_reduce(e, emit_reduction); }

void emit_open_reduce(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<reduce>();
  const shape& input = e.anchor()->inputs()[0].type();
  dim count = 1;
  for (std::int64_t axis : op.axes)
    count = count * input.dims[static_cast<std::size_t>(normalize_axis(axis, input.rank()))];
  const reduction_rule rule(op.kind, input.type);
  const auto nothing = [&] {
    const Value start = rule.start(e.code, 1);
    if (op.kind != reduction_kind::mean) return start;
    return rule.finish_mean(e.code, start, e.code.number(e.code.type(rule.type, 1), 0));
  };
  emit_with_empty_sums(e, count, nothing, [&] { with_reduce(e, emit_open_reduction); });
}

void emit_arg_reduce(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<arg_reduce>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  arg_reduction_rule rule(op, input.type().type);
  element_type index_type = code.index_element();
  auto axis = static_cast<std::size_t>(normalize_axis(op.axis, input.type().rank()));
  reduction r{"arg_reduce",
              input,
              {static_cast<std::int64_t>(axis)},
              op.keep_dims,
              {compute_type(rule.compared), index_type},
              {},
              {},
              {},
              {}};
  r.start = [&, index_type](std::int64_t lanes) { return rule.start(code, lanes, index_type); };
  r.meet = [&](const row_team& team, const row_team::place& at, Value x, std::span<const Value> state) {
    const axis_index& along = at.where[axis];
    Value index = code.splat(along.base, team.lanes());
    if (along.step) index = code.add(index, code.lane_numbers(team.lanes()));
    Value fresh = at.fresh ? code.splat(at.fresh, team.lanes()) : Value();
    return rule.meet(code, convert_element(code, x, input.type().type, rule.compared), index, fresh, state);
  };
  r.join = [&](std::span<const Value> a, std::span<const Value> b) { return rule.join(code, a, b); };
  r.finish = [&, index_type](std::span<const Value> state, const row_team&) {
    return convert_element(code, state[1], index_type, element_type::i64);
  };
  emit_reduction(e, r);
}

}  // namespace kiln::gpu
