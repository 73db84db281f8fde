#include "mlir_bridge/kinds/convolution/cpu/kept_pixels.hpp"

#include "ir/ops/reduction.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::cpu {

kept_pixels::kept_pixels(kernel_emitter& emitter, const instruction& window, std::vector<column_segment> segments,
                         std::int64_t most)
    : e(emitter),
      code(emitter.code),
      window_{const_cast<instruction*>(&window), 0},
      normal_(emitter.anchor()->inputs()[0]),
      segments_(std::move(segments)),
      channels_(kernel_emitter::dims(normal_).back()),
      type_(compute_type(normal_.type().type)),
      memory_(code.stack(type_, most * channels_)) {}

void kept_pixels::keep(Value first, const tile_shape& shape, const values& sums, const tile_place& place) {
  const element_type accumulation = accumulation_type(window_.producer->inputs()[0].type().type);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    values where = place.locate(code.constant(r));
    Value row = code.mul(code.sub(where.back(), first), channels_);
    where.push_back({});
    for (std::int64_t v = 0; v < shape.vectors; ++v) {
      where.back() = code.add(place.column, v * shape.lanes);
      evaluator ev(e);
      ev.bind(window_, to_result(code, sums[static_cast<std::size_t>(r * shape.vectors + v)], accumulation,
                                 window_.type().type));
      code.store(memory_, code.add(row, where.back()), type_, ev.element(normal_, where, shape.lanes));
    }
  }
}

// The mean, the variance of the differences to it, and the scaled differences.
void kept_pixels::normalize(Value first, values pixel) {
  const auto& op = *e.anchor()->op().get_if<kiln::normalize>();
  const mlir::Type scalar = code.scalar_type(type_);
  auto plus = [&](Value a, Value b) { return code.make<mlir::arith::AddFOp>(a, b).getResult(); };
  auto times = [&](Value a, Value b) { return code.make<mlir::arith::MulFOp>(a, b).getResult(); };
  const Value share = code.number(scalar, 1.0 / static_cast<double>(channels_)),
              row = code.mul(code.sub(pixel.back(), first), channels_);
  Value mean = op.centered ? times(sum_of(row, plus), share) : Value();
  auto centered = [&](Value x) {
    return mean ? code.make<mlir::arith::SubFOp>(x, code.splat(mean, code_builder::lanes_of(x))).getResult() : x;
  };
  Value squares = sum_of(row, [&](Value sum, Value x) {
    Value difference = centered(x);
    return code.fma(difference, difference, sum);
  });
  Value variance = plus(times(squares, share), code.number(scalar, op.epsilon));
  Value scale =
      code.make<mlir::arith::DivFOp>(code.number(scalar, 1), code.make<mlir::math::SqrtOp>(variance).getResult());
  pixel.push_back({});
  for (const column_segment& segment : segments_)
    code.loop(segment.first_column, segment.first_column + segment.count * segment.columns(), segment.lanes,
              [&](Value column) {
                pixel.back() = column;
                evaluator ev(e);
                ev.bind(e.anchor_result(),
                        times(centered(code.load(memory_, code.add(row, column), type_, segment.lanes)),
                              code.splat(scale, segment.lanes)));
                ev.store_outputs(pixel, segment.lanes);
              });
}

// Sums over the channels of the pixel whose channels begin at `row` of the memory. `add` takes the sum so far and the
// next vector of channels.
Value kept_pixels::sum_of(Value row, const std::function<Value(Value sum, Value x)>& add) {
  Value total;
  for (const column_segment& segment : segments_) {
    Value zero = code.number(code.type(type_, segment.lanes), 0);
    values sums = code.loop(
        segment.first_column, segment.first_column + segment.count * segment.columns(), segment.columns(),
        values(static_cast<std::size_t>(segment.vectors), zero), [&](Value column, std::span<const Value> carried) {
          values next;
          for (std::int64_t v = 0; v < segment.vectors; ++v)
            next.push_back(
                add(carried[static_cast<std::size_t>(v)],
                    code.load(memory_, code.add(row, code.add(column, v * segment.lanes)), type_, segment.lanes)));
          return next;
        });
    for (Value sum : sums) {
      Value part = segment.lanes > 1 ? code.horizontal(mlir::vector::CombiningKind::ADD, sum) : sum;
      total = total ? code.make<mlir::arith::AddFOp>(total, part).getResult() : part;
    }
  }
  return total;
}

}  // namespace kiln::cpu
