#include "mlir_bridge/codegen/evaluator_rules.hpp"

#include <algorithm>
#include <array>

#include "ir/error.hpp"
#include "mlir_bridge/codegen/alike_operands.hpp"
#include "mlir_bridge/codegen/int4.hpp"
#include "mlir_bridge/codegen/open_checks.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/regrouped_axes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"

namespace kiln::codegen {

template <class Op>
bool evaluator_rules::try_rule(Value& result) {
  const Op* op = node.op().get_if<Op>();
  if (op) result = rule(*op);
  return op != nullptr;
}

Value evaluator_rules::compute() {
  Value result;
  bool found = try_rule<elementwise>(result) || try_rule<convert>(result) || try_rule<bit_cast>(result) ||
               try_rule<broadcast>(result) || try_rule<constant>(result) || try_rule<reshape>(result) ||
               try_rule<transpose>(result) || try_rule<slice>(result) || try_rule<pad>(result) ||
               try_rule<concat>(result) || try_rule<gather>(result) || try_rule<gather_elements>(result) ||
               try_rule<gather_nd>(result) || try_rule<iota>(result) || try_rule<resize>(result);
  if (!found)
    throw error(error_kind::unsupported, "the " + std::string(code.on.name) + " generators cannot inline '" +
                                             std::string(node.op().name()) +
                                             "' into a kernel; it must be a kernel of its own");
  return result;
}

// --- computing

namespace {

// Returns true if v is computed from gathered elements in a few operations.
bool is_gathered(const kernel_emitter& e, value v, int& operations) {
  if (e.in_memory(v) || operations-- <= 0) return false;
  const operation& op = v.producer->op();
  if (op.is<gather>() || op.is<gather_elements>()) return true;
  return std::ranges::any_of(v.producer->inputs(), [&](value input) { return is_gathered(e, input, operations); });
}

// Returns the number in a scalar constant, or in a broadcast of one.
std::optional<double> fixed_number(value v) {
  while (v.producer->op().is<broadcast>()) v = v.producer->inputs()[0];
  const literal* data = module::constant(v);
  return data && data->type().element_count() == 1 ? std::optional(data->at(0)) : std::nullopt;
}

// Whether v says which elements come before a count that data decide: positions below a number in memory.
bool is_before_a_count(const kernel_emitter& e, value v) {
  while (v.producer->op().is<broadcast>()) v = v.producer->inputs()[0];
  const auto* op = v.producer->op().get_if<elementwise>();
  if (!op || op->function != scalar_function::less || !v.producer->inputs()[0].producer->op().is<iota>()) return false;
  value count = v.producer->inputs()[1];
  while (count.producer->op().is<broadcast>()) count = count.producer->inputs()[0];
  return e.in_memory(count) && count.type().elements() == dim(1);
}

// Subtracts the operations that compute v from `operations`, at most to 0.
void count_operations(const kernel_emitter& e, value v, int& operations) {
  if (e.in_memory(v) || operations <= 0) return;
  --operations;
  for (value input : v.producer->inputs()) count_operations(e, input, operations);
}

}  // namespace

// Elements beyond a count are padding: what is in their place is not worth computing. A branch pays from about 8
// operations on, and needs one condition for all lanes.
bool evaluator_rules::skips_padding() const {
  int operations = 8, looked_at = 16;
  if (!fixed_number(node.inputs()[2])) return false;
  if (!is_before_a_count(e, node.inputs()[0])) return false;
  if (lanes > 1 && !is_equal_in_lanes(node.inputs()[0], where, looked_at)) return false;
  count_operations(e, node.inputs()[1], operations);
  return operations == 0;
}

Value evaluator_rules::rule(const elementwise& op) {
  // Rows that a scatter replaces (aot/passes/scattered_rows.hpp): most rows need no gathered elements.
  if (op.function == scalar_function::where) {
    if (skips_padding()) {
      const Value valid = ev.at(node.inputs()[0], where, lanes);
      return branch(
          lanes > 1 ? code.lane(valid, 0) : valid, [&] { return ev.at(node.inputs()[1], where, lanes); },
          [&] { return ev.at(node.inputs()[2], where, lanes); });
    }
    int first = 16, second = 16, third = 16;
    if (lanes > 1 && is_gathered(e, node.inputs()[1], first) != is_gathered(e, node.inputs()[2], second) &&
        is_equal_in_lanes(node.inputs()[0], where, third))
      return branch(
          code.lane(ev.at(node.inputs()[0], where, lanes), 0), [&] { return ev.at(node.inputs()[1], where, lanes); },
          [&] { return ev.at(node.inputs()[2], where, lanes); });
  }
  values operands;
  for (value input : node.inputs()) operands.push_back(ev.at(input, where, lanes));
  return apply(code, op.function, node.inputs().back().type().type, operands);
}

namespace {

// Returns true for the clamp with which QuantizeLinear ends.
bool is_clamped_to_i32(value v) {
  const auto* e = v.producer->op().get_if<elementwise>();
  if (!e || e->function != scalar_function::clamp) return false;
  auto low = fixed_number(v.producer->inputs()[1]), high = fixed_number(v.producer->inputs()[2]);
  return low && high && *low >= -32768 && *high <= 65535;
}

}  // namespace

Value evaluator_rules::rule(const convert& op) {
  if (lanes > 1 && is_float(operand().type().type) && is_integer(op.type) && storage_bits(op.type) >= 8 &&
      storage_bits(op.type) <= 16 && is_clamped_to_i32(operand()))
    return float_in_range_to_integer(code, ev.at(operand(), where, lanes), op.type);
  return convert_element(code, ev.at(operand(), where, lanes), operand().type().type, op.type);
}

Value evaluator_rules::rule(const bit_cast& op) {
  Value v = ev.at(operand(), where, lanes);
  const element_type from = operand().type().type;
  // Packed elements are integers of their width in both types.
  if (is_packed(from)) return v;
  Value stored = code.to_storage(v, from);
  mlir::Type type = code.with_lanes(code.storage_type(op.type), lanes);
  return code.to_compute(
      stored.getType() == type ? stored : code.make<mlir::arith::BitcastOp>(type, stored).getResult(), op.type);
}

Value evaluator_rules::rule(const constant& op) {
  mlir::Type type = code.type(op.data.type().type, lanes);
  if (op.data.type().element_count() != 1 && !op.data.splat())
    throw error(error_kind::internal,
                "kernel '" + e.symbol + "' holds a constant of several values; those must be inputs of the kernel");
  if (is_float(op.data.type().type)) return code.number(type, op.data.at(0));
  return code.integer(type, op.data.at_int(0));
}

Value evaluator_rules::rule(const iota& op) {
  const axis_index& index = where[static_cast<std::size_t>(op.axis)];
  return convert_element(code, index.uniform() ? code.splat(index.base, lanes) : ev.each_lane(index, lanes),
                         code.index_element(), op.type);
}

// --- moving

Value evaluator_rules::rule(const broadcast&) {
  const auto &from = operand_dims(), &to = result_dims();
  position source;
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t axis = to.size() - from.size() + i;
    source.push_back(stretched(where[axis], from[i], to[axis]));
  }
  return ev.at(operand(), source, lanes);
}

Value evaluator_rules::rule(const transpose& op) {
  position source(where.size());
  for (std::size_t i = 0; i < where.size(); ++i) source[static_cast<std::size_t>(op.permutation[i])] = where[i];
  return ev.at(operand(), source, lanes);
}

Value evaluator_rules::rule(const slice& op) {
  position source;
  for (std::size_t i = 0; i < where.size(); ++i) source.push_back(affine(where[i], op.steps[i], op.starts[i]));
  return ev.at(operand(), source, lanes);
}

Value evaluator_rules::rule(const reshape&) {
  // Maps an index of `from` to an index of `to`.
  const auto &to = operand_dims(), &from = result_dims();
  position source(to.size());
  for (const auto& [i_begin, i, j_begin, j] : regroup_axes(from, to)) {
    if (i - i_begin == 1 && j - j_begin == 1) {
      source[j_begin] = where[i_begin];
      continue;
    }
    axis_index linear = fixed(0);
    dim stride = 1;
    for (std::size_t k = i; k-- > i_begin;) {
      if (from[k] != 1) linear = sum(linear, times(where[k], stride));
      stride = stride * from[k];
    }
    for (std::size_t k = j; k-- > j_begin;) {
      bool rest_is_one = std::all_of(to.begin() + static_cast<std::ptrdiff_t>(j_begin),
                                     to.begin() + static_cast<std::ptrdiff_t>(k), [](const dim& d) { return d == 1; });
      if (to[k] == 1) {
        source[k] = fixed(0);
      } else if (rest_is_one) {
        source[k] = linear;
        linear = fixed(0);
      } else {
        std::tie(linear, source[k]) = divide(linear, to[k]);
      }
    }
  }
  return ev.at(operand(), source, lanes);
}

axis_index evaluator_rules::padded(const axis_index& index, const pad& op, std::size_t axis, const dim& extent) {
  axis_index inner = affine(index, 1, -op.before[axis]);
  if (op.before[axis] == 0 && op.after[axis] == 0) return index;
  if (inner.low >= 0 && extent.is_static() && inner.high <= extent.value()) return inner;
  Value i = ev.each_lane(inner, index.uniform() ? 1 : lanes);
  switch (op.mode) {
    // The caller masks positions outside.
    case pad_mode::constant_: break;
    case pad_mode::edge: break;
    case pad_mode::reflect: {
      if (extent == 1) {
        i = code.mul(i, 0);
        break;
      }
      // Mirrored indices 0 1 .. n-1 n-2 .. 1 have this period, for any pad width. An open extent can be 1, for which
      // the formula gives 0, so it is limited.
      const dim period = extent.is_static() ? 2 * (extent - 1) : dim::max(2 * (extent - 1), 1);
      const dim lift = (op.before[axis] / period + 1) * period;
      i = e.rem(e.add(i, lift), period);
      Value back = period.is_static() ? code.integer(i.getType(), period.value())
                                      : code.splat(e.size(period), code_builder::lanes_of(i));
      i = code.min(i, code.sub(back, i));
      break;
    }
    case pad_mode::wrap: i = e.rem(e.add(i, (op.before[axis] / extent + 1) * extent), extent); break;
  }
  axis_index result = ev.from_each(e.min(code.max(i, 0), extent - 1), index.uniform() ? 1 : lanes);
  result.low = 0;
  result.high = known_bound(extent);
  return result;
}

Value evaluator_rules::rule(const pad& op) {
  const auto& extents = operand_dims();
  bool fills = op.mode == pad_mode::constant_;
  const element_type element = operand().type().type;
  mlir::Type type = code.type(element, lanes);
  Value fill;
  if (fills && is_float(element)) fill = code.number(type, op.fill);
  else if (fills)
    fill = code.integer(type, element == element_type::boolean ? op.fill != 0 : static_cast<std::int64_t>(op.fill));
  position source;
  // Conditions for all lanes together, and for each lane.
  Value all_inside, lane_inside;
  for (std::size_t axis = 0; axis < where.size(); ++axis) {
    axis_index inner = affine(where[axis], 1, -op.before[axis]);
    const std::int64_t most = known_bound(extents[axis]);
    bool inside = (op.before[axis] == 0 && op.after[axis] == 0) ||
                  (inner.low >= 0 && extents[axis].is_static() && inner.high <= most);
    bool outside = inner.high <= 0 || inner.low >= most || extents[axis] == 0;
    if (fills && !inside && outside) return fill;
    if (fills && !inside) {
      const std::array ends{dim(0), extents[axis]};
      bool together = on_one_side(inner, ends);
      Value i = together ? inner.base : ev.each_lane(inner, lanes);
      // One unsigned comparison covers both ends.
      Value end = extents[axis].is_static() ? code.integer(i.getType(), most)
                                            : code.splat(e.size(extents[axis]), code_builder::lanes_of(i));
      Value in = code.make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, i, end);
      Value& condition = together ? all_inside : lane_inside;
      condition = condition ? code.make<mlir::arith::AndIOp>(condition, in).getResult() : in;
      // Inside the branch the index is known to be in range.
      if (together) {
        inner.low = std::max<std::int64_t>(inner.low, 0);
        inner.high = std::min(inner.high, most);
        source.push_back(inner);
        continue;
      }
      // The lanes read at positions that are clamped to the operand, so it must have elements.
      if (!never_negative(extents[axis] - 1)) {
        Value some = code.less(code.constant(0), e.size(extents[axis]));
        all_inside = all_inside ? code.make<mlir::arith::AndIOp>(all_inside, some).getResult() : some;
      }
    }
    source.push_back(padded(where[axis], op, axis, extents[axis]));
  }
  auto read = [&] {
    Value v = ev.at(operand(), source, lanes);
    return lane_inside ? code.select(lane_inside, v, fill) : v;
  };
  if (!all_inside) return read();
  return branch(all_inside, read, [&] { return fill; });
}

Value evaluator_rules::concat_by_number(const concat& op, std::size_t first, std::size_t last,
                                        const std::vector<dim>& begins) {
  const axis_index& index = where[static_cast<std::size_t>(op.axis)];
  if (!code.on.small_code || index.each || index.step < 0 || index.step > 1) return {};
  if (!begins[first].is_static() || !begins[first + 1].is_static()) return {};
  const std::int64_t extent = (begins[first + 1] - begins[first]).value();
  // The index is block * width + constant, and a block of `width` elements lies in one operand.
  auto [variable, constant] = code.split_sum(index.base);
  auto product = variable ? variable.getDefiningOp<mlir::arith::MulIOp>() : mlir::arith::MulIOp();
  const auto width = product ? code.known(product.getRhs()) : std::nullopt;
  if (!width || *width <= 0 || extent % *width) return {};
  constant -= begins[first].value();
  const std::int64_t inside = (constant % *width + *width) % *width, blocks = extent / *width;
  if (inside + (index.step ? lanes : 1) > *width) return {};
  const std::vector<buffer> operands = alike_operands(e, node, first, last);
  if (operands.empty()) return {};
  const Value block = code.add(product.getLhs(), (constant - inside) / *width);
  const Value table = e.pointer_table(operands);
  const mlir::Type pointer = e.pointer(operands[0]).getType();
  const Value slot = code.make<mlir::LLVM::GEPOp>(table.getType(), pointer, table,
                                                  llvm::ArrayRef<mlir::LLVM::GEPArg>{code.div(block, blocks)});
  position source = where;
  source[static_cast<std::size_t>(op.axis)] = {
      code.add(code.mul(code.rem(block, blocks), *width), inside), index.step, {}, 0, extent, 1};
  return ev.load(operands[0], source, lanes, code.make<mlir::LLVM::LoadOp>(pointer, slot));
}

Value evaluator_rules::concat_from(const concat& op, std::size_t first, std::size_t last,
                                   const std::vector<dim>& begins) {
  auto axis = static_cast<std::size_t>(op.axis);
  axis_index index = where[axis];
  // Drop inputs that the index cannot reach.
  while (first + 1 < last && index.low >= known_bound(begins[first + 1])) ++first;
  while (first + 1 < last && begins[last - 1].is_static() && index.high <= begins[last - 1].value()) --last;
  auto from = [&](std::size_t i, axis_index local) {
    position source = where;
    source[axis] = std::move(local);
    return ev.at(operand(i), source, lanes);
  };
  if (first + 1 == last) return from(first, affine(index, 1, dim(0) - begins[first]));
  if (Value v = concat_by_number(op, first, last, begins)) return v;
  if (on_one_side(index, std::span(begins).subspan(first + 1, last - first - 1))) {
    std::size_t middle = (first + last) / 2;
    return branch(
        code.less(index.base, e.size(begins[middle])), [&] { return concat_from(op, first, middle, begins); },
        [&] { return concat_from(op, middle, last, begins); });
  }
  // The lanes are in different inputs. Read each input at clamped positions and select.
  Value each = ev.each_lane(index, lanes), result;
  for (std::size_t i = first; i < last; ++i) {
    const dim extent = begins[i + 1] - begins[i];
    if (extent == 0) continue;
    axis_index local = ev.from_each(e.min(code.max(e.sub(each, begins[i]), 0), extent - 1), lanes);
    local.low = 0;
    local.high = known_bound(extent);
    // An empty input has no position to read at.
    Value v = never_negative(extent - 1)
                  ? from(i, local)
                  : branch(
                        code.less(code.constant(0), e.size(extent)), [&] { return from(i, local); },
                        [&] { return code.number(code.type(operand(i).type().type, lanes), 0); });
    Value begin = begins[i].is_static() ? code.integer(each.getType(), begins[i].value())
                                        : code.splat(e.size(begins[i]), code_builder::lanes_of(each));
    result = result ? code.select(code.less(each, begin), result, v) : v;
  }
  return result;
}

Value evaluator_rules::rule(const concat& op) {
  std::vector<dim> begins{0};
  for (std::size_t i = 0; i < node.inputs().size(); ++i)
    begins.push_back(begins.back() + operand_dims(i)[static_cast<std::size_t>(op.axis)]);
  return concat_from(op, 0, node.inputs().size(), begins);
}

Value evaluator_rules::rule(const gather& op) {
  auto axis = static_cast<std::ptrdiff_t>(op.axis);
  auto index_rank = static_cast<std::ptrdiff_t>(operand(1).type().rank());
  position of_index(where.begin() + axis, where.begin() + axis + index_rank);
  position source(where.begin(), where.begin() + axis);
  source.push_back(looked_up(operand(1), of_index, operand_dims()[static_cast<std::size_t>(axis)]));
  source.insert(source.end(), where.begin() + axis + index_rank, where.end());
  return ev.at(operand(), source, lanes);
}

Value evaluator_rules::rule(const gather_elements& op) {
  position source = where;
  auto axis = static_cast<std::size_t>(op.axis);
  source[axis] = looked_up(operand(1), where, operand_dims()[axis]);
  return ev.at(operand(), source, lanes);
}

Value evaluator_rules::rule(const gather_nd& op) {
  const auto &data = operand_dims(), &indices = operand_dims(1);
  auto batch = static_cast<std::size_t>(op.batch_dims), prefix = indices.size() - 1;
  position source(where.begin(), where.begin() + static_cast<std::ptrdiff_t>(batch));
  for (std::int64_t i = 0; i < indices.back().value(); ++i) {
    position of_index(where.begin(), where.begin() + static_cast<std::ptrdiff_t>(prefix));
    of_index.push_back(fixed(i));
    source.push_back(looked_up(operand(1), of_index, data[batch + static_cast<std::size_t>(i)]));
  }
  source.insert(source.end(), where.begin() + static_cast<std::ptrdiff_t>(prefix), where.end());
  return ev.at(operand(), source, lanes);
}

}  // namespace kiln::codegen
