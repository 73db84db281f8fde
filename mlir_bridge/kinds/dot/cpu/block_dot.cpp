#include "mlir_bridge/kinds/dot/cpu/block_dot.hpp"

#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/tile.hpp"
#include "mlir_bridge/kinds/dot/cpu/column_groups.hpp"
#include "mlir_bridge/kinds/dot/cpu/weights_ahead.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

class block_dot {
 public:
  block_dot(kernel_emitter& emitter, const dot_sizes& sizes, const block_weights& weights)
      : e(emitter),
        code(emitter.code),
        sizes_(sizes),
        weights_(weights),
        type_(weights.codes.type().type),
        lanes_(register_lanes(emitter, element_type::f32)),
        step_(storage_bits(type_) == 4 ? 2 * lanes_ : lanes_),
        blocks_(sizes.k / weights.block),
        columns_(sizes.m == 1 ? 4 : 2),
        ahead_(emitter, sizes, weights, columns_),
        left_(emitter.materialize(emitter.anchor()->inputs()[0])),
        codes_(*emitter.in_memory(weights.codes)) {}

  void emit() {
    arrange_rows();
    for_column_groups(
        e, sizes_, "block_dot", sizes_.m, columns_,
        [&](const result_group& group, const write_row& write) { multiply(group.column, group.columns, write); });
  }

 private:
  // Writes the rows as f32 in the order in which the codes come out of their bytes: of 2 * lanes elements of 4 bits the
  // even ones, then the odd ones. Sums the elements of each block by lanes.
  void arrange_rows() {
    rows_ = e.add_scratch(element_type::f32, {sizes_.m, sizes_.k});
    if (weights_.offsets) sums_ = e.add_scratch(element_type::f32, {sizes_.m, blocks_, lanes_});
    e.parallel("arrange_rows", {sizes_.m, blocks_}, weights_.block / lanes_ * 4, [&](std::span<const Value> at) {
      const Value begin = code.add(code.mul(at[0], sizes_.k), code.mul(at[1], weights_.block));
      Value sum = code.number(code.type(element_type::f32, lanes_), 0);
      const values total = code.loop(0, weights_.block, step_, {sum}, [&](Value k, std::span<const Value> carried) {
        const Value place = code.add(begin, k);
        values parts{load_left(place)};
        if (step_ > lanes_) parts = even_and_odd(code, parts[0], load_left(code.add(place, lanes_)));
        Value result = carried[0];
        for (std::size_t i = 0; i < parts.size(); ++i) {
          code.store(e.pointer(rows_), code.add(place, static_cast<std::int64_t>(i) * lanes_), element_type::f32,
                     parts[i]);
          result = code.make<arith::AddFOp>(result, parts[i]);
        }
        return values{result};
      });
      if (!weights_.offsets) return;
      const Value place = code.mul(code.add(code.mul(at[0], blocks_), at[1]), lanes_);
      code.store(e.pointer(*sums_), place, element_type::f32, total[0]);
    });
  }

  Value load_left(Value place) {
    return widen(code, code.load(e.pointer(left_), place, left_.type, lanes_), left_.type, element_type::f32);
  }

  // Where the code of element k of a column is.
  Value byte_of(Value column, Value k) { return code.div(code.add(code.mul(column, sizes_.k), k), step_ / lanes_); }

  // The codes of `step_` elements of a column as floats: one vector, or the even and the odd ones.
  values load_codes(Value column, Value k) {
    const std::int64_t in_byte = step_ / lanes_;
    const Value place = byte_of(column, k);
    const bool is_signed = is_signed_integer(type_);
    const mlir::Type wide = code.with_lanes(code.builder.getI32Type(), lanes_);
    const Value bytes = code.load(e.pointer(codes_), place, element_type::u8, lanes_);
    const Value x = is_signed ? code.make<arith::ExtSIOp>(wide, bytes).getResult()
                              : code.make<arith::ExtUIOp>(wide, bytes).getResult();
    const auto number = [&](Value v) { return code.make<arith::SIToFPOp>(code.type(element_type::f32, lanes_), v); };
    if (in_byte == 1) return {number(x)};
    const Value four = code.integer(wide, 4), rest = code.integer(wide, 28);
    if (!is_signed)
      return {number(code.make<arith::AndIOp>(x, code.integer(wide, 15))), number(code.make<arith::ShRUIOp>(x, four))};
    const Value low = code.make<arith::ShLIOp>(x, rest);
    return {number(code.make<arith::ShRSIOp>(low, rest)), number(code.make<arith::ShRSIOp>(x, four))};
  }

  // Computes all rows of `count` columns.
  void multiply(Value column, std::int64_t count, const write_row& write) {
    const std::int64_t m = sizes_.m;
    const Value zero = code.number(code.type(element_type::f32, lanes_), 0);
    values sums(static_cast<std::size_t>(m * count), zero);
    ahead_.scales(column);
    sums = code.loop(0, blocks_, 1, sums, [&](Value block, std::span<const Value> carried) {
      values result(carried.begin(), carried.end()), parts;
      values offsets;
      for (std::int64_t c = 0; c < count && weights_.offsets; ++c) {
        Value offset = of_blocks(e, *weights_.offsets, code.add(column, c), block);
        if (weights_.subtracts_offset) offset = code.make<arith::NegFOp>(offset);
        offsets.push_back(code.splat(offset, lanes_));
      }
      for (std::int64_t r = 0; r < m; ++r) {
        Value sum;
        if (weights_.offsets)
          sum = code.load(e.pointer(*sums_), code.mul(code.add(block, r * blocks_), lanes_), element_type::f32, lanes_);
        for (std::int64_t c = 0; c < count; ++c)
          parts.push_back(sum ? code.make<arith::MulFOp>(sum, offsets[static_cast<std::size_t>(c)]).getResult() : zero);
      }
      const Value begin = code.mul(block, weights_.block);
      for (std::int64_t c = 0; c < count; ++c)
        ahead_.codes(byte_of(code.add(column, c), begin), weights_.block * lanes_ / step_);
      for (std::int64_t k = 0; k < weights_.block; k += step_) add_products(column, count, code.add(begin, k), parts);
      for (std::int64_t c = 0; c < count; ++c) {
        const Value scale = code.splat(of_blocks(e, weights_.scales, code.add(column, c), block), lanes_);
        for (std::int64_t r = 0; r < m; ++r) {
          const auto i = static_cast<std::size_t>(r * count + c);
          result[i] = code.fma(parts[i], scale, result[i]);
        }
      }
      return result;
    });
    for (std::int64_t r = 0; r < m; ++r) {
      values totals;
      for (std::int64_t c = 0; c < count; ++c)
        totals.push_back(
            code.horizontal(mlir::vector::CombiningKind::ADD, sums[static_cast<std::size_t>(r * count + c)]));
      write(r, totals);
    }
  }

  // parts[r, c] += row r * column c over `step_` elements from k on.
  void add_products(Value column, std::int64_t count, Value k, values& parts) {
    std::vector<values> columns;
    for (std::int64_t c = 0; c < count; ++c) columns.push_back(load_codes(code.add(column, c), k));
    for (std::int64_t r = 0; r < sizes_.m; ++r)
      for (std::size_t half = 0; half < columns[0].size(); ++half) {
        const Value place = code.add(k, r * sizes_.k + static_cast<std::int64_t>(half) * lanes_),
                    row = code.load(e.pointer(rows_), place, element_type::f32, lanes_);
        for (std::int64_t c = 0; c < count; ++c) {
          Value& part = parts[static_cast<std::size_t>(r * count + c)];
          part = code.fma(row, columns[static_cast<std::size_t>(c)][half], part);
        }
      }
  }

  kernel_emitter& e;
  code_builder& code;
  const dot_sizes& sizes_;
  const block_weights& weights_;
  element_type type_;
  std::int64_t lanes_;
  // Elements along the depth whose codes are loaded at once.
  std::int64_t step_;
  std::int64_t blocks_, columns_;
  weights_ahead ahead_;
  buffer left_, codes_, rows_;
  std::optional<buffer> sums_;
};

}  // namespace

void emit_block_dot(kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights) {
  block_dot(e, sizes, weights).emit();
}

}  // namespace kiln::cpu
