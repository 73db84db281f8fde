#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

#include <algorithm>

#include "ir/ops/elementwise.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::cpu {

namespace {

// Returns true for functions that compile to one or two instructions. Others are polynomials.
bool is_simple(scalar_function f) {
  switch (f) {
    case scalar_function::add:
    case scalar_function::sub:
    case scalar_function::mul:
    case scalar_function::min:
    case scalar_function::max:
    case scalar_function::neg:
    case scalar_function::abs:
    case scalar_function::relu:
    case scalar_function::clamp:
    case scalar_function::where:
    case scalar_function::less:
    case scalar_function::less_equal:
    case scalar_function::greater:
    case scalar_function::greater_equal: return true;
    default: return false;
  }
}

}  // namespace

Value to_result(code_builder& code, Value sum, element_type accumulation, element_type result) {
  mlir::Type target = code.type(result, code_builder::lanes_of(sum));
  if (sum.getType() == target) return sum;
  if (is_float(accumulation) && is_float(result))
    return result == element_type::f64 ? Value(code.make<mlir::arith::ExtFOp>(target, sum))
                                       : Value(code.make<mlir::arith::TruncFOp>(target, sum));
  if (is_float(result)) return code.make<mlir::arith::SIToFPOp>(target, sum);
  if (is_float(accumulation)) return code.make<mlir::arith::FPToSIOp>(target, sum);
  if (storage_bits(result) < storage_bits(accumulation)) return code.make<mlir::arith::TruncIOp>(target, sum);
  return code.make<mlir::arith::ExtSIOp>(target, sum);
}

std::int64_t epilogue_cost(const kernel_emitter& e) {
  std::int64_t cost = 0;
  bool after = false;
  for (const instruction& i : e.fusion.instructions()) {
    if (&i == e.anchor()) after = true;
    else if (const auto* op = i.op().get_if<elementwise>(); op && after) cost += is_simple(op->function) ? 1 : 20;
    else if (after && i.op().is<convert>()) cost += 2;
  }
  return cost;
}

tile_writer::tile_writer(kernel_emitter& emitter, const tile_shape& shape, element_type accumulation)
    : e(emitter),
      shape_(shape),
      accumulation_(accumulation),
      light_(epilogue_cost(emitter) <= light_epilogue),
      memory_(emitter.code.stack(accumulation, shape.rows * shape.columns())) {}

void tile_writer::store(evaluator& ev, Value sum, const values& where) {
  ev.bind(e.anchor_result(), to_result(e.code, sum, accumulation_, e.anchor_result().type().type));
  ev.store_outputs(where, code_builder::lanes_of(sum));
}

void tile_writer::write_inline(const values& sums, const tile_place& place) {
  evaluator ev(e);  // rows share what they read alike: a bias, scales of channels
  for (std::int64_t r = 0; r < shape_.rows; ++r) {
    values where = place.locate(e.code.constant(r));
    where.push_back({});
    for (std::int64_t v = 0; v < shape_.vectors; ++v) {
      where.back() = e.code.add(place.column, v * shape_.lanes);
      store(ev, sums[static_cast<std::size_t>(r * shape_.vectors + v)], where);
    }
  }
}

void tile_writer::write_from_memory(const values& sums, const tile_place& place) {
  code_builder& code = e.code;
  for (std::size_t i = 0; i < sums.size(); ++i)
    code.store(memory_, code.constant(static_cast<std::int64_t>(i) * shape_.lanes), accumulation_, sums[i]);
  write_memory(place);
}

void tile_writer::write_memory(const tile_place& place) {
  code_builder& code = e.code;
  code.loop(code.constant(0), place.valid_rows, 1, [&](Value row) {
    values where = place.locate(row);
    where.push_back({});
    Value first = code.mul(row, shape_.columns());
    Value vectors = code.constant(shape_.vectors);
    if (place.last_columns)
      vectors = code.select(place.in_last_panel, code.constant(place.last_columns / shape_.lanes), vectors);
    auto store_vector = [&](Value v) {
      evaluator ev(e);
      values at = where;
      at.back() = code.add(place.column, code.mul(v, shape_.lanes));
      store(ev, code.load(memory_, code.add(first, code.mul(v, shape_.lanes)), accumulation_, shape_.lanes), at);
    };
    // An expensive epilogue (GELU, SiLU) is written out for each vector: a processor overlaps independent polynomials,
    // but not the steps of one.
    if (light_ || place.last_columns) code.loop(code.constant(0), vectors, 1, store_vector);
    else
      for (std::int64_t v = 0; v < shape_.vectors; ++v) store_vector(code.constant(v));
    // Stores the columns of a partly filled last panel with ever shorter vectors.
    if (place.last_columns % shape_.lanes)
      code.when(place.in_last_panel, [&] {
        std::int64_t done = place.last_columns / shape_.lanes * shape_.lanes;
        for (std::int64_t lanes = shape_.lanes / 2; lanes; lanes /= 2) {
          if (!((place.last_columns - done) & lanes)) continue;
          values at = where;
          at.back() = code.add(place.column, done);
          evaluator ev(e);
          store(ev, code.load(memory_, code.add(first, done), accumulation_, lanes), at);
          done += lanes;
        }
      });
  });
}

void tile_writer::fetch(const buffer& b, const tile_place& place, bool written) {
  code_builder& code = e.code;
  const std::int64_t line = 64 * 8 / storage_bits(b.type);
  const Value pointer = e.pointer(b);
  for (std::int64_t row = 0; row < shape_.rows; ++row) {
    values where = place.locate(code.constant(row));
    where.push_back(place.column);
    const Value first = code.linearize(where, b.dims());
    for (std::int64_t column = 0; column < shape_.columns(); column += line)
      code.prefetch(pointer, code.add(first, column), b.type, 1, written);
  }
}

void tile_writer::fetch(const tile_place& place) {
  const std::vector<value> factors = e.anchor()->inputs();
  for (value v : e.fusion.parameters()) {
    const std::optional<buffer> b = e.in_memory(v);
    if (b && storage_bits(b->type) >= 8 && b->dims() == e.dims(e.anchor_result()) &&
        std::ranges::find(factors, v) == factors.end())
      fetch(*b, place, false);
  }
  for (std::size_t i = 0; i < e.outputs().size(); ++i) fetch(e.output(i), place, true);
}

void tile_writer::write(const values& sums, const tile_place& place) {
  code_builder& code = e.code;
  const bool always_full = place.rows_always_full && !place.last_columns;
  if (!light_) return write_from_memory(sums, place);
  if (always_full) return write_inline(sums, place);
  Value full;
  if (!place.rows_always_full) full = code.equal(place.valid_rows, code.constant(shape_.rows));
  if (place.last_columns) {
    Value inner = code.make<mlir::arith::XOrIOp>(place.in_last_panel, code.integer(code.builder.getI1Type(), 1));
    full = full ? Value(code.make<mlir::arith::AndIOp>(full, inner)) : inner;
  }
  code.branch(
      full,
      [&] {
        write_inline(sums, place);
        return values{};
      },
      [&] {
        write_from_memory(sums, place);
        return values{};
      });
}

}  // namespace kiln::cpu
