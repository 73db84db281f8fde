#include "mlir_bridge/kinds/dot/cpu/digit_dot.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/lane_product.hpp"
#include "mlir_bridge/cpu/contraction/tile.hpp"
#include "mlir_bridge/kinds/dot/cpu/column_groups.hpp"
#include "mlir_bridge/kinds/dot/cpu/weights_ahead.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t digit_bits = 8;
// Up to this many rows are computed in one pass over the columns. More rows are taken two at a time.
constexpr std::int64_t most_rows_once = 4;
// Elements whose codes are in one lane of 32 bits, the even ones and the odd ones.
constexpr std::int64_t elements_of_lane = 8;
// Elements of the shortest vectors of codes: 16 bytes.
constexpr std::int64_t least_elements = 32;
// Blocks whose elements are all smaller are rounded to multiples of 2^-122; of 2^-114 with two digits, 2^-106 with one.
constexpr double least_maximum = 0x1p-100;

// An f32 sum needs three digits. A product that may round its left operand gets as many as it has bytes.
std::int64_t digits_of(const kernel_emitter& e) {
  const std::int64_t bits = e.anchor()->op().get_if<dot>()->left_bits;
  return bits == 0 ? 3 : std::min<std::int64_t>(3, (bits + digit_bits - 1) / digit_bits);
}

// The number that the largest element of a block becomes: at most the largest one whose digits are at most 127
// (0x7f7f7f, 0x7f7f or 0x7f). With several digits it is less, because a product with the rounded inverse of the maximum
// may exceed it by one.
double largest_number(std::int64_t digits) { return digits == 3 ? 0x7f7f00 : digits == 2 ? 0x7f7e : 0x7f; }

// A column's codes from some element on, and the scales and offsets of their blocks.
struct column_part {
  lane_factor even, odd;
  Value scale, offset;
};

class digit_dot {
 public:
  digit_dot(kernel_emitter& emitter, const dot_sizes& sizes, const block_weights& weights)
      : e(emitter),
        code(emitter.code),
        sizes_(sizes),
        weights_(weights),
        is_signed_(is_signed_integer(weights.codes.type().type)),
        whole_offset_(whole_offset()),
        count_(digits_of(emitter)),
        products_(*find_lane_products(emitter.target, element_type::u8, element_type::i8)),
        lanes_(register_lanes(emitter, element_type::f32)),
        rows_(sizes.m <= most_rows_once ? sizes.m : 2),
        columns_(rows_ == 1 || sizes.m > rows_ ? 4 : 2),
        ahead_(emitter, sizes, weights, columns_),
        left_(emitter.materialize(emitter.anchor()->inputs()[0])),
        codes_(*emitter.in_memory(weights.codes)),
        digits_(emitter.add_scratch(element_type::i8, {sizes.m, count_, 2, sizes.k / 2})),
        scales_(emitter.add_scratch(element_type::f32, {sizes.m, sizes.k / weights.block})) {
    if (whole_offset_ != 0)
      sums_ = emitter.add_scratch(whole_offset_ ? element_type::i32 : element_type::f32,
                                  {sizes.m, sizes.k / elements_of_lane});
  }

  void emit() {
    divide_rows();
    for_column_groups(e, sizes_, "digit_dot", rows_, columns_,
                      [&](const result_group& group, const write_row& write) { multiply(group, write); });
  }

 private:
  // Whether no column is read again for more rows.
  bool is_read_once() const { return rows_ == sizes_.m; }
  std::int64_t blocks() const { return sizes_.k / weights_.block; }
  mlir::Type integers(std::int64_t lanes) { return code.with_lanes(code.builder.getI32Type(), lanes); }
  // In row 0.
  Value digit_place(std::int64_t digit, std::int64_t odd, Value half) const {
    return code.add(half, (digit * 2 + odd) * (sizes_.k / 2));
  }

  // Writes the digits of each block, those of its even and of its odd elements apart, its scale, and the sums of its
  // integers that share a lane.
  void divide_rows() {
    const std::int64_t block = weights_.block;
    e.parallel("divide_rows", {sizes_.m, blocks()}, block, [&](std::span<const Value> at) {
      const Value begin = code.add(code.mul(at[0], sizes_.k), code.mul(at[1], block));
      Value most = code.number(code.type(element_type::f32, lanes_), least_maximum);
      most = code.loop(0, block, lanes_, {most}, [&](Value k, std::span<const Value> carried) {
        Value magnitude = code.make<mlir::math::AbsFOp>(load_left(code.add(begin, k)));
        return values{larger(code, element_type::f32, magnitude, carried[0])};
      })[0];
      const Value maximum = code.horizontal(mlir::vector::CombiningKind::MAXIMUMF, most);
      const Value bound = code.number(maximum.getType(), largest_number(count_));
      const Value inverse = code.splat(code.make<arith::DivFOp>(bound, maximum), lanes_);
      code.store(e.pointer(scales_), code.add(code.mul(at[0], blocks()), at[1]), element_type::f32,
                 code.make<arith::DivFOp>(maximum, bound));
      code.loop(0, block, 2 * lanes_, [&](Value k) {
        const Value place = code.add(begin, k);
        const values parts = even_and_odd(code, load_left(place), load_left(code.add(place, lanes_)));
        Value both;
        for (std::int64_t odd : {0, 1}) {
          const Value scaled = code.make<arith::MulFOp>(parts[static_cast<std::size_t>(odd)], inverse);
          Value number =
              code.make<arith::FPToSIOp>(integers(lanes_), code.make<mlir::math::RoundEvenOp>(scaled).getResult());
          both = both ? code.add(both, number) : number;
          const Value half = code.div(code.add(code.mul(at[1], block), k), 2);
          store_digits(code.add(half, code.mul(at[0], count_ * sizes_.k)), odd, number);
        }
        if (sums_) store_sums(code.div(place, elements_of_lane), both);
      });
    });
  }

  // From the last digit to the first: the low byte as a signed number is a digit, and what is left is shifted.
  void store_digits(Value at, std::int64_t odd, Value number) {
    const mlir::Type type = number.getType(), bytes = code.with_lanes(code.builder.getI8Type(), lanes_);
    const Value shift = code.integer(type, digit_bits);
    for (std::int64_t digit = count_ - 1; digit >= 0; --digit) {
      const Value low = code.make<arith::TruncIOp>(bytes, number);
      code.store(e.pointer(digits_), digit_place(digit, odd, at), element_type::i8, low);
      if (digit == 0) break;
      number = code.sub(number, code.make<arith::ExtSIOp>(type, low));
      number = code.make<arith::ShRSIOp>(number, shift);
    }
  }

  // Returns the offset of the codes if it is one whole number for all, small enough to be added to sums of products.
  std::optional<std::int64_t> whole_offset() const {
    constexpr double most = 16;
    double offset = is_signed_ ? -8 : 0;
    if (weights_.offsets) {
      value v = *weights_.offsets;
      while (v.producer->op().is<broadcast>() || v.producer->op().is<convert>() || v.producer->op().is<reshape>())
        v = v.producer->inputs()[0];
      const auto* c = v.producer->op().get_if<constant>();
      if (!c || c->data.type().element_count() != 1) return std::nullopt;
      const double number = c->data.to_doubles()[0];
      offset += weights_.subtracts_offset ? -number : number;
    }
    if (offset != std::trunc(offset) || std::abs(offset) > most) return std::nullopt;
    return static_cast<std::int64_t>(offset);
  }

  // `both`: the sums of the even and odd neighbours; four of them share a lane.
  void store_sums(Value place, Value both) {
    Value total;
    for (std::int64_t part = 0; part < bytes_of_lane; ++part) {
      llvm::SmallVector<std::int64_t> order;
      for (std::int64_t i = part; i < lanes_; i += bytes_of_lane) order.push_back(i);
      const Value some = code.make<mlir::vector::ShuffleOp>(both, both, order);
      total = total ? code.add(total, some) : some;
    }
    const Value stored =
        whole_offset_ ? code.mul(total, code.integer(total.getType(), *whole_offset_))
                      : Value(code.make<arith::SIToFPOp>(code.type(element_type::f32, lanes_ / bytes_of_lane), total));
    code.store(e.pointer(*sums_), place, sums_->type, stored);
  }

  Value load_left(Value place) {
    return widen(code, code.load(e.pointer(left_), place, left_.type, lanes_), left_.type, element_type::f32);
  }

  // Computes a group: with whole registers of codes, then what is left with halves of them.
  void multiply(const result_group& group, const write_row& write) {
    const std::int64_t m = group.rows, count = group.columns, at_once = lanes_ * elements_of_lane,
                       whole = sizes_.k / at_once * at_once;
    auto total = [&](const values& sums, values& totals) {
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const Value sum = code.horizontal(mlir::vector::CombiningKind::ADD, sums[i]);
        totals[i] = totals[i] ? code.make<arith::AddFOp>(totals[i], sum).getResult() : sum;
      }
    };
    auto zeros = [&](std::int64_t lanes) {
      return values(static_cast<std::size_t>(m * count), code.number(code.type(element_type::f32, lanes), 0));
    };
    values totals(static_cast<std::size_t>(m * count));
    if (is_read_once()) ahead_.scales(group.column);
    if (whole > 0)
      total(code.loop(0, whole, at_once, zeros(lanes_),
                      [&](Value k, std::span<const Value> sums) {
                        return with_products(group, k, lanes_, values(sums.begin(), sums.end()));
                      }),
            totals);
    std::int64_t done = whole;
    for (std::int64_t lanes = lanes_ / 2; done < sizes_.k; lanes /= 2) {
      if (done + lanes * elements_of_lane > sizes_.k) continue;
      total(with_products(group, code.constant(done), lanes, zeros(lanes)), totals);
      done += lanes * elements_of_lane;
    }
    for (std::int64_t r = 0; r < m; ++r)
      write(r, std::span(totals).subspan(static_cast<std::size_t>(r * count), static_cast<std::size_t>(count)));
  }

  // Numbers of the blocks that lanes [0, lanes) from element k on belong to, in each of those lanes.
  Value in_lanes(std::int64_t lanes, const std::function<Value(std::int64_t count)>& of_some_blocks) {
    const std::int64_t some = std::max<std::int64_t>(1, lanes * elements_of_lane / weights_.block);
    const Value numbers = of_some_blocks(some);
    if (some == 1) return code.splat(numbers, lanes);
    llvm::SmallVector<std::int64_t> order;
    for (std::int64_t i = 0; i < lanes; ++i) order.push_back(i * some / lanes);
    return code.make<mlir::vector::ShuffleOp>(numbers, numbers, order);
  }

  // sums[r, c] + the products of `lanes` * 8 elements from k on.
  values with_products(const result_group& group, Value k, std::int64_t lanes, values sums) {
    const Value block = code.div(k, weights_.block), half = code.div(k, 2);
    const mlir::Type floats = code.type(element_type::f32, lanes);
    std::vector<column_part> columns;
    for (std::int64_t c = 0; c < group.columns; ++c) {
      const Value at = code.add(group.column, c);
      column_part part = codes_of(code.add(code.mul(at, sizes_.k / 2), half), lanes * bytes_of_lane);
      part.scale = in_lanes(lanes, [&](std::int64_t n) { return of_blocks(e, weights_.scales, at, block, n); });
      if (!whole_offset_) part.offset = offset_of(at, block, lanes);
      columns.push_back(part);
    }
    for (std::int64_t r = 0; r < group.rows; ++r) {
      const Value row = code.add(group.row, r);
      const Value row_scale = in_lanes(lanes, [&](std::int64_t n) {
        return code.load(e.pointer(scales_), code.add(block, code.mul(row, blocks())), element_type::f32, n);
      });
      Value row_sums;
      if (sums_)
        row_sums = code.load(e.pointer(*sums_),
                             code.add(code.div(k, elements_of_lane), code.mul(row, sizes_.k / elements_of_lane)),
                             sums_->type, lanes);
      for (std::int64_t c = 0; c < group.columns; ++c) {
        const column_part& part = columns[static_cast<std::size_t>(c)];
        Value sum = code.integer(integers(lanes), 0);
        for (std::int64_t digit = 0; digit < count_; ++digit) {
          if (digit > 0) sum = code.make<arith::ShLIOp>(sum, code.integer(sum.getType(), digit_bits));
          for (std::int64_t odd : {0, 1}) {
            const Value factor =
                code.load(e.pointer(digits_), code.add(digit_place(digit, odd, half), code.mul(row, count_ * sizes_.k)),
                          element_type::i8, lanes * bytes_of_lane);
            sum = add_lane_products(code, products_, odd ? part.odd : part.even, {factor, {}}, sum);
          }
        }
        if (whole_offset_ && sums_) sum = code.add(sum, row_sums);
        Value number = code.make<arith::SIToFPOp>(floats, sum);
        if (part.offset) number = code.fma(part.offset, row_sums, number);
        Value& of_both = sums[static_cast<std::size_t>(r * group.columns + c)];
        of_both = code.fma(number, code.make<arith::MulFOp>(part.scale, row_scale), of_both);
      }
    }
    return sums;
  }

  // The codes of even and of odd elements, as unsigned bytes; those of signed types are 8 more.
  column_part codes_of(Value place, std::int64_t bytes) {
    if (is_read_once()) ahead_.codes(place, bytes);
    Value x = code.load(e.pointer(codes_), place, element_type::u8, bytes);
    if (is_signed_) x = code.make<arith::XOrIOp>(x, code.integer(x.getType(), 0x88));
    column_part part;
    part.even.first = code.make<arith::AndIOp>(x, code.integer(x.getType(), 15));
    part.odd.first = code.make<arith::ShRUIOp>(x, code.integer(x.getType(), 4));
    return part;
  }

  // Returns the offset of the codes, in each lane.
  Value offset_of(Value column, Value block, std::int64_t lanes) {
    Value offset = in_lanes(lanes, [&](std::int64_t n) { return of_blocks(e, *weights_.offsets, column, block, n); });
    if (weights_.subtracts_offset) offset = code.make<arith::NegFOp>(offset);
    if (!is_signed_) return offset;
    return code.make<arith::AddFOp>(offset, code.number(code.type(element_type::f32, lanes), -8));
  }

  kernel_emitter& e;
  code_builder& code;
  const dot_sizes& sizes_;
  const block_weights& weights_;
  bool is_signed_;
  std::optional<std::int64_t> whole_offset_;
  std::int64_t count_;  // digits of an element
  lane_products products_;
  std::int64_t lanes_, rows_, columns_;  // of a group
  weights_ahead ahead_;
  buffer left_, codes_;
  // [row, digit, parity, half of k], [row, block], [row, lane].
  buffer digits_, scales_;
  std::optional<buffer> sums_;
};

}  // namespace

bool is_digit_dot(const kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights) {
  const auto products = find_lane_products(e.target, element_type::u8, element_type::i8);
  return products && products->vnni && storage_bits(weights.codes.type().type) == 4 && sizes.k % least_elements == 0 &&
         std::has_single_bit(static_cast<std::uint64_t>(weights.block)) &&
         weights.block % (2 * register_lanes(e, element_type::f32)) == 0;
}

void emit_digit_dot(kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights) {
  digit_dot(e, sizes, weights).emit();
}

}  // namespace kiln::cpu
