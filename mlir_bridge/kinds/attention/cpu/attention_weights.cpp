#include "mlir_bridge/kinds/attention/cpu/attention_emitter.hpp"

#include "mlir_bridge/codegen/call_intrinsic.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

// Up to this many vectors, all weights of a row are kept in registers.
constexpr std::int64_t most_row_vectors = 8;

}  // namespace

void attention_emitter::store_weights(Value r, Value key, Value some) {
  if (!by_lane) return code.store(scores, code.add(at_row(r, chunk), key), sum_type, some);
  const Value at = code.add(at_row(r, weight_pitch()), key);
  constexpr std::int64_t register_lanes = 16;
  if (code_builder::lanes_of(some) != register_lanes) return code.store(weights, at, value_.type().type, some);
  const auto of = [&](mlir::Type type) { return mlir::VectorType::get({register_lanes}, type); };
  const Value rounded =
      call_intrinsic(code, "llvm.x86.avx512bf16.cvtneps2bf16.512", of(code.builder.getBF16Type()), {some});
  code.store(weights, at, element_type::i16,
             code.make<mlir::vector::BitCastOp>(of(code.builder.getIntegerType(16)), rounded));
}

void attention_emitter::make_weights(Value r, Value first, Value count) {
  const std::int64_t lanes = tile.lanes;
  Value start = at_row(r, chunk), kept_row = code.add(slot, r);
  if (mask || op.causal) apply_masks(r, start, first, count);
  // Entries beyond the keys, up to a whole vector, are set to weight 0.
  Value whole = code.mul(code.div(code.add(count, lanes - 1), code.constant(lanes)), lanes);
  code.loop(count, whole, 1, [&](Value j) { code.store(scores, code.add(start, j), sum_type, number(lowest)); });
  Value top =
      code.loop(code.constant(0), whole, lanes, {number(lowest, lanes)}, [&](Value j, std::span<const Value> so_far) {
        return values{larger_number(code.load(scores, code.add(start, j), sum_type, lanes), so_far[0])};
      })[0];
  Value before = code.load(tops, kept_row, sum_type, 1);
  if (lanes > 1) top = code.horizontal(mlir::vector::CombiningKind::MAXNUMF, top);
  top = larger_number(top, before);
  // All scores so far were masked. Use 0 for the running maximum, because -inf - (-inf) is NaN.
  Value safe = code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, top, number(lowest)), number(0), top);
  if (by_lane) store_weights(r, count, number(0));
  Value sum =
      code.loop(code.constant(0), whole, lanes, {number(0, lanes)}, [&](Value j, std::span<const Value> so_far) {
        Value at = code.add(start, j),
              weight = exponential(
                  code, code.make<arith::SubFOp>(code.load(scores, at, sum_type, lanes), code.splat(safe, lanes)));
        store_weights(r, j, weight);
        return values{code.make<arith::AddFOp>(so_far[0], weight)};
      })[0];
  if (lanes > 1) sum = code.horizontal(mlir::vector::CombiningKind::ADD, sum);
  Value correction = exponential(code, code.make<arith::SubFOp>(before, safe));
  code.store(tops, kept_row, sum_type, top);
  code.store(corrections, r, sum_type, correction);
  code.store(sums, kept_row, sum_type, code.fma(code.load(sums, kept_row, sum_type, 1), correction, sum));
}

bool attention_emitter::fits_registers() const {
  return tile.lanes > 1 && !direct && !op.causal && n.keys >= tile.lanes && n.keys <= most_row_vectors * tile.lanes;
}

void attention_emitter::make_weights_of_row(Value r) {
  const std::int64_t lanes = tile.lanes, vectors = (n.keys + lanes - 1) / lanes, rest = n.keys % lanes;
  const Value start = at_row(r, chunk), none = number(lowest, lanes);
  const query_row row = row_at(code.add(first_row, r));
  auto first_of = [&](std::int64_t v) { return code.constant(std::min(v * lanes, n.keys - lanes)); };
  values found;
  Value top = none;
  for (std::int64_t v = 0; v < vectors; ++v) {
    Value score = code.load(scores, code.add(start, first_of(v)), sum_type, lanes);
    if (mask) score = masked(score, row, first_of(v));
    if (rest && v + 1 == vectors)
      score =
          code.select(code.less(code.lane_numbers(lanes), code.splat(code.constant(lanes - rest), lanes)), none, score);
    top = larger_number(score, top);
    found.push_back(score);
  }
  top = code.horizontal(mlir::vector::CombiningKind::MAXNUMF, top);
  // All scores are masked: 0 instead of the maximum, because -inf - (-inf) is NaN.
  top = code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, top, number(lowest)), number(0), top);
  Value sum = number(0, lanes);
  for (Value& weight : found) {
    weight = exponential(code, code.make<arith::SubFOp>(weight, code.splat(top, lanes)));
    sum = code.make<arith::AddFOp>(sum, weight);
  }
  // The last vector first: the one before overwrites what both hold.
  for (std::int64_t v = vectors; v-- > 0;) store_weights(r, first_of(v), found[static_cast<std::size_t>(v)]);
  if (by_lane) store_weights(r, code.constant(n.keys), number(0));
  code.store(sums, code.add(slot, r), sum_type, code.horizontal(mlir::vector::CombiningKind::ADD, sum));
}

Value attention_emitter::masked(Value score, const query_row& row, Value key_index) {
  const std::int64_t lanes = code_builder::lanes_of(score);
  evaluator ev(e);
  values where = row.head;
  where.insert(where.end(), {row.position, key_index});
  auto dims = e.dims(mask);
  where.erase(where.begin(), where.end() - static_cast<std::ptrdiff_t>(dims.size()));
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == 1) where[i] = code.constant(0);
  position place = ev.along(where, !dims.empty() && dims.back() > 1 ? lanes : 1);
  Value given = ev.at(mask, place, lanes);
  element_type type = mask.type().type;
  if (type == element_type::boolean) return code.select(given, score, number(lowest, lanes));
  return code.make<arith::AddFOp>(score, convert_element(code, given, compute_type(type), sum_type));
}

void attention_emitter::apply_masks(Value r, Value start, Value first, Value count) {
  query_row row = row_at(code.add(first_row, r));
  sweep(count, tile.lanes, [&](Value j, std::int64_t lanes) {
    Value at = code.add(start, j), score = code.load(scores, at, sum_type, lanes), key_index = code.add(first, j);
    if (mask) score = masked(score, row, key_index);
    if (op.causal) {
      Value indices = lanes == 1 ? key_index : code.add(code.splat(key_index, lanes), code.lane_numbers(lanes));
      Value end = code.add(row.position, n.keys - n.queries + 1);
      score = code.select(code.less(indices, code.splat(end, lanes)), score, number(lowest, lanes));
    }
    code.store(scores, at, sum_type, score);
  });
}

}  // namespace kiln::cpu
