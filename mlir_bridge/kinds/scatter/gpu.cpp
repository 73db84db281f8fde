// scatter_elements and scatter_nd: copies the data, then processes all updates in parallel without atomics and with
// deterministic results. With a reduction, the first of several updates of one element applies all of them in order;
// without one, only the last update writes. An epilogue is a pointwise stage over the scattered tensor.
#include <algorithm>
#include <array>
#include <numeric>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"
#include "mlir_bridge/kinds/scatter/generators.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

// The buffer in which the scattered tensor is built: the only output, or scratch that an epilogue reads.
struct destination {
  kernel_emitter& e;
  bool direct;
  buffer target;

  explicit destination(kernel_emitter& emitter) : e(emitter) {
    value result = e.anchor_result();
    direct = e.outputs().size() == 1 && e.outputs()[0] == result;
    target = direct ? e.output(0) : e.add_open_scratch(result.type().type, kernel_emitter::sizes(result));
    emit_pointwise_into(e, e.anchor()->inputs()[0], target, false);
  }
  void finish() {
    if (direct) return;
    e.hold(e.anchor_result(), target);
    emit_pointwise(e);
  }
};

Value joined(code_builder& code, scatter_reduction reduction, element_type type, Value old, Value update) {
  static constexpr std::array functions{scalar_function::add, scalar_function::add, scalar_function::mul,
                                        scalar_function::min, scalar_function::max};
  std::array<Value, 2> operands{old, update};
  return apply(code, functions[static_cast<std::size_t>(reduction)], type, operands);
}

// Negative indices count from the end; indices out of range are clamped.
Value place(kernel_emitter& e, Value index, element_type type, const dim& extent) {
  code_builder& code = e.code;
  Value wide = convert_element(code, index, type, element_type::i64);
  Value wrapped = code.select(code.less(wide, code.integer(wide.getType(), 0)), e.add(wide, extent), wide);
  return code.to_index(e.min(code.max(wrapped, 0), extent - 1));
}

// Update `own` of `count` updates: place_of(i) is the index of the element that update i changes, update_of(i) its
// value in compute type. Stores only if this update is the one that must write.
struct colliding_updates {
  kernel_emitter& e;
  code_builder& code;
  scatter_reduction reduction;
  element_type type;
  dim count;
  std::int64_t lanes;
  std::function<Value(Value)> place_of, update_of;

  void apply(Value own, Value target, const std::function<Value(Value place)>& offset, std::int64_t multiple) const {
    Value here = place_of(own), yes = code.integer(code.builder.getI1Type(), 1),
          no = code.integer(code.builder.getI1Type(), 0);
    bool replaces = reduction == scatter_reduction::none;
    // Without a reduction, this update does nothing if a later one changes the same element; with one, if an earlier
    // one does.
    Value low = replaces ? code.add(own, 1) : code.constant(0), high = replaces ? e.size(count) : own;
    Value other = count == 1 ? no : code.loop(low, high, 1, {no}, [&](Value i, std::span<const Value> s) {
      return values{code.make<arith::OrIOp>(s[0], code.equal(place_of(i), here)).getResult()};
    })[0];
    code.when(code.make<arith::XOrIOp>(other, yes).getResult(), [&] {
      Value at = offset(here), result;
      if (replaces) {
        result = update_of(own);
      } else {
        Value old = joined(code, reduction, type, code.load(target, at, type, lanes, multiple), update_of(own));
        result = count == 1
                     ? old
                     : code.loop(code.add(own, 1), e.size(count), 1, {old}, [&](Value i, std::span<const Value> s) {
                         return code.branch(
                             code.equal(place_of(i), here),
                             [&] { return values{joined(code, reduction, type, s[0], update_of(i))}; },
                             [&] { return values{s[0]}; });
                       })[0];
      }
      code.store(target, at, type, result, multiple);
    });
  }
};

}  // namespace

void emit_scatter_elements(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<scatter_elements>();
  auto& code = e.code;
  value data = e.anchor()->inputs()[0], indices = e.anchor()->inputs()[1], updates = e.anchor()->inputs()[2];
  const std::vector<dim>&sizes = kernel_emitter::sizes(data), &loops = kernel_emitter::sizes(indices);
  auto axis = static_cast<std::size_t>(normalize_axis(op.axis, sizes.size()));
  // They are read many times.
  e.materialize(indices);
  if (op.reduction != scatter_reduction::none) e.materialize(updates);
  destination to(e);
  // Updates at different positions of the other axes cannot collide.
  e.parallel_open("scatter_elements", loops, 1, [&](std::span<const Value> at) {
    Value target = e.pointer(to.target);
    auto position_of = [&](Value i) {
      values where(at.begin(), at.end());
      where[axis] = i;
      return where;
    };
    colliding_updates u{e, code, op.reduction, data.type().type, loops[axis], 1, {}, {}};
    u.place_of = [&](Value i) {
      evaluator ev(e);
      return place(e, ev.element(indices, position_of(i)), indices.type().type, sizes[axis]);
    };
    u.update_of = [&](Value i) {
      evaluator ev(e);
      return ev.element(updates, position_of(i));
    };
    u.apply(
        at[axis], target,
        [&](Value here) {
          const values where = position_of(here);
          Value linear = where[0];
          for (std::size_t i = 1; i < where.size(); ++i) linear = code.add(e.mul(linear, sizes[i]), where[i]);
          return linear;
        },
        1);
  });
  to.finish();
}

void emit_scatter_nd(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<scatter_nd>();
  auto& code = e.code;
  value data = e.anchor()->inputs()[0], indices = e.anchor()->inputs()[1], updates = e.anchor()->inputs()[2];
  element_type type = data.type().type;
  const std::vector<dim>&sizes = kernel_emitter::sizes(data), &index_sizes = kernel_emitter::sizes(indices);
  const std::int64_t width = index_sizes.back().value();
  dim tuples = 1, slice = 1;
  for (std::size_t i = 0; i + 1 < index_sizes.size(); ++i) tuples = tuples * index_sizes[i];
  for (std::size_t i = static_cast<std::size_t>(width); i < sizes.size(); ++i) slice = slice * sizes[i];
  buffer source = e.materialize(updates), index_buffer = e.materialize(indices);
  // The index of the slice that each tuple addresses.
  std::optional<buffer> slices;
  if (tuples != 0 && slice != 0) {
    slices = e.add_open_scratch(code.index_element(), {tuples});
    e.parallel_open("scatter_places", {tuples}, width, [&](std::span<const Value> at) {
      Value number = code.constant(0);
      for (std::int64_t j = 0; j < width; ++j) {
        const dim& extent = sizes[static_cast<std::size_t>(j)];
        Value index = code.load(e.pointer(index_buffer), code.add(code.mul(at[0], width), j), index_buffer.type, 1);
        number = code.add(e.mul(number, extent), place(e, index, index_buffer.type, extent));
      }
      code.store(e.pointer(*slices), at[0], code.index_element(), number);
    });
  }
  destination to(e);
  if (!slices) return to.finish();
  const std::int64_t lanes = common_power(access_lanes(type), {known_factor(slice)});
  e.parallel_open("scatter_nd", {tuples, slice / lanes}, 1, [&](std::span<const Value> at) {
    Value target = e.pointer(to.target), from = e.pointer(source), places = e.pointer(*slices),
          i = code.mul(at[1], lanes);
    colliding_updates u{e, code, op.reduction, type, tuples, lanes, {}, {}};
    u.place_of = [&](Value tuple) { return code.load(places, tuple, code.index_element(), 1); };
    u.update_of = [&](Value tuple) { return code.load(from, code.add(e.mul(tuple, slice), i), type, lanes, lanes); };
    u.apply(at[0], target, [&](Value here) { return code.add(e.mul(here, slice), i); }, lanes);
  });
  to.finish();
}

bool opens_scatter_nd(const instruction& anchor) { return anchor.inputs()[1].type().dims.back().is_static(); }

}  // namespace kiln::gpu
