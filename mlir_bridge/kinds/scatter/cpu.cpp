// scatter_elements and scatter_nd: copies the data, then applies the updates in order, so that the last of several
// updates of one element wins. Only updates that cannot collide run in parallel. An epilogue is a pointwise stage over
// the scattered tensor. Sizes may be open.
#include <array>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/pointwise.hpp"
#include "mlir_bridge/kinds/scatter/generators.hpp"

namespace kiln::cpu {

namespace {

// The buffer in which the scattered tensor is built: the only output, or scratch that an epilogue reads.
struct destination {
  kernel_emitter& e;
  bool direct;
  buffer target;

  explicit destination(kernel_emitter& emitter) : e(emitter) {
    value result = e.anchor_result();
    direct = e.outputs().size() == 1 && e.outputs()[0] == result;
    target = direct ? e.output(0) : e.add_open_scratch(result.type().type, kernel_emitter::sizes(result));
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
  if (reduction == scatter_reduction::none) return update;
  std::array<Value, 2> operands{old, update};
  return apply(code, functions[static_cast<std::size_t>(reduction)], type, operands);
}

// Negative indices count from the end; indices out of range are clamped.
Value place(kernel_emitter& e, Value index, element_type type, const dim& extent) {
  code_builder& code = e.code;
  Value wide = convert_element(code, index, type, element_type::i64);
  Value wrapped = code.select(code.less(wide, code.constant(0)), e.add(wide, extent), wide);
  return e.min(code.max(wrapped, 0), extent - 1);
}

// Returns the size, or for an open one the size that is assumed when work items are sized.
std::int64_t usual(const dim& size) { return size.is_static() ? size.value() : 64; }

}  // namespace

void emit_scatter_elements(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<scatter_elements>();
  auto& code = e.code;
  value data = e.anchor()->inputs()[0], indices = e.anchor()->inputs()[1], updates = e.anchor()->inputs()[2];
  element_type type = data.type().type;
  destination to(e);
  emit_pointwise_into(e, data, to.target, false);
  const auto &dims = kernel_emitter::sizes(data), &loops = kernel_emitter::sizes(indices);
  auto axis = static_cast<std::size_t>(normalize_axis(op.axis, dims.size()));
  // Updates at different positions of the other axes cannot collide.
  std::vector<dim> rows = loops;
  rows[axis] = loops[axis] == 0 ? 0 : 1;
  e.parallel_open("scatter_elements", rows, usual(loops[axis]) * 4, [&](std::span<const Value> at) {
    Value target = e.pointer(to.target);
    code.loop(code.constant(0), e.size(loops[axis]), 1, [&](Value i) {
      values where(at.begin(), at.end());
      where[axis] = i;
      evaluator ev(e);
      Value index = ev.element(indices, where), update = ev.element(updates, where);
      where[axis] = place(e, index, indices.type().type, dims[axis]);
      Value offset = code.constant(0);
      for (std::size_t k = 0; k < dims.size(); ++k) offset = code.add(e.mul(offset, dims[k]), where[k]);
      Value old = op.reduction == scatter_reduction::none ? update : code.load(target, offset, type, 1);
      code.store(target, offset, type, joined(code, op.reduction, type, old, update));
    });
  });
  to.finish();
}

void emit_scatter_nd(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<scatter_nd>();
  auto& code = e.code;
  value data = e.anchor()->inputs()[0], indices = e.anchor()->inputs()[1], updates = e.anchor()->inputs()[2];
  element_type type = data.type().type;
  buffer source = e.materialize(updates), index_buffer = e.materialize(indices);
  destination to(e);
  emit_pointwise_into(e, data, to.target, false);
  const auto &dims = kernel_emitter::sizes(data), &index_dims = kernel_emitter::sizes(indices);
  const std::int64_t width = index_dims.back().value();
  dim tuples = 1, slice = 1;
  for (std::size_t i = 0; i + 1 < index_dims.size(); ++i) tuples = tuples * index_dims[i];
  for (std::size_t i = static_cast<std::size_t>(width); i < dims.size(); ++i) slice = slice * dims[i];
  const auto strides = buffer{buffer_kind::scratch, 0, type, dims}.strides();
  // Tuples may address the same slice, so they are processed in order. Elements of a slice are independent of each
  // other.
  constexpr std::int64_t piece = 4096;
  const dim pieces = (slice + piece - 1) / piece;
  const std::int64_t lanes = e.lanes_for(type, known_bound(slice));
  if (tuples == 0 || slice == 0) return to.finish();
  e.parallel_open(
      "scatter_nd", {pieces}, std::min(piece, usual(slice)) * usual(tuples), [&](std::span<const Value> at) {
        Value target = e.pointer(to.target), from = e.pointer(source), index_pointer = e.pointer(index_buffer);
        Value low = code.mul(at[0], piece), high = e.min(code.add(low, piece), slice);
        code.loop(code.constant(0), e.size(tuples), 1, [&](Value tuple) {
          Value start = code.constant(0);
          for (std::int64_t j = 0; j < width; ++j) {
            auto axis = static_cast<std::size_t>(j);
            Value index = code.load(index_pointer, code.add(code.mul(tuple, width), j), index_buffer.type, 1);
            start = code.add(start, e.mul(place(e, index, index_buffer.type, dims[axis]), strides[axis]));
          }
          auto move = [&](Value i, std::int64_t n) {
            Value offset = code.add(start, i);
            Value update = code.load(from, code.add(e.mul(tuple, slice), i), type, n);
            Value old = op.reduction == scatter_reduction::none ? update : code.load(target, offset, type, n);
            code.store(target, offset, type, joined(code, op.reduction, type, old, update));
          };
          Value whole = code.add(low, code.mul(code.div(code.sub(high, low), lanes), lanes));
          code.loop(low, whole, lanes, [&](Value i) { move(i, lanes); });
          if (known_factor(slice) % lanes) code.loop(whole, high, 1, [&](Value i) { move(i, 1); });
        });
      });
  to.finish();
}

bool opens_scatter_nd(const instruction& anchor) { return anchor.inputs()[1].type().dims.back().is_static(); }

}  // namespace kiln::cpu
