#include "mlir_bridge/gpu/wgmma/divided_weights.hpp"

#include <array>
#include <vector>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/split_f32.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t row_bytes = 128, warp_rows = 16, block_depth = 64, step_depth = 16;
constexpr std::int64_t box_bytes = block_depth * row_bytes;
// Barriers of the turns: this one is the first consumer's, the next one the second's.
constexpr std::int64_t first_turn = 4, two_groups = 256;

}  // namespace

// A thread's row of 32 elements of k holds four chunks that its loads need; the swizzle exchanges chunks by the row's
// lowest three bits, which are the lane's.
values divided_weights::load_rows(Value block, Value first_column, Value in_group) const {
  const mlir::Type pair = code_builder::with_lanes(code_.builder.getF32Type(), 2);
  const Value warp = code_.div(in_group, 32), lane = code_.rem(in_group, 32), row = code_.div(lane, 4),
              column = code_.rem(lane, 4), turned = bit_xor(code_, code_.div(column, 2), row);
  const Value first = code_.add(code_.add(first_column, code_.mul(warp, warp_rows)), row),
              start = code_.add(code_.mul(first, row_bytes), code_.mul(code_.rem(column, 2), 8));
  std::array<Value, 4> places;
  for (std::int64_t i = 0; i < 4; ++i) {
    const Value chunk = bit_xor(code_, turned, code_.integer(turned.getType(), 2 * i));
    places[static_cast<std::size_t>(i)] = byte_address(code_, block, code_.add(start, code_.mul(chunk, chunk_bytes)));
  }
  values result;
  for (std::int64_t step = 0; step < block_depth / step_depth; ++step)
    for (std::int64_t q = 0; q < 2; ++q)
      for (std::int64_t h = 0; h < 2; ++h) {
        const std::int64_t bytes = step / 2 * tile_.n * row_bytes + h * 8 * row_bytes;
        result.push_back(code_.make<mlir::LLVM::LoadOp>(
            pair, byte_address(code_, places[static_cast<std::size_t>(step % 2 * 2 + q)], bytes), 8u));
      }
  return result;
}

// A row is one k of 32 columns. The lowest three bits of k, which the swizzle depends on, are those of the lane's pair.
values divided_weights::load_columns(Value block, Value first_column, Value in_group) const {
  const mlir::Type f32 = code_.builder.getF32Type();
  const Value warp = code_.div(in_group, 32), lane = code_.rem(in_group, 32), row = code_.div(lane, 4),
              depth = code_.mul(code_.rem(lane, 4), 2);
  const Value box = code_.add(code_.div(first_column, 32), code_.div(warp, 2)),
              chunk = code_.add(code_.mul(code_.rem(warp, 2), 4), code_.div(row, 4));
  const Value start = code_.add(code_.mul(box, box_bytes), code_.mul(code_.rem(row, 4), 4));
  // places[h][i]: columns 8 h further, the i-th of the pair.
  std::array<std::array<Value, 2>, 2> places;
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t i = 0; i < 2; ++i) {
      const Value k = code_.add(depth, i), turned = bit_xor(code_, code_.add(chunk, 2 * h), k);
      const Value bytes = code_.add(code_.add(start, code_.mul(k, row_bytes)), code_.mul(turned, chunk_bytes));
      places[static_cast<std::size_t>(h)][static_cast<std::size_t>(i)] = byte_address(code_, block, bytes);
    }
  values result;
  for (std::int64_t step = 0; step < block_depth / step_depth; ++step)
    for (std::int64_t q = 0; q < 2; ++q)
      for (std::size_t h = 0; h < 2; ++h) {
        values pair;
        for (std::size_t i = 0; i < 2; ++i)
          pair.push_back(code_.make<mlir::LLVM::LoadOp>(
              f32, byte_address(code_, places[h][i], (step * step_depth + q * 8) * row_bytes), 4u));
        result.push_back(code_.from_lanes(pair));
      }
  return result;
}

values divided_weights::load(Value weights, Value first_column, Value in_group) const {
  return k_inner_ ? load_rows(weights, first_column, in_group) : load_columns(weights, first_column, in_group);
}

// While one warpgroup's instructions multiply, the other one loads and divides. Without an order, both would do the
// same at the same time.
values divided_weights::multiply(const wgmma_shape& shape, Value weights, Value rows, Value first_column,
                                 Value in_group, Value warpgroup) const {
  const mlir::Type i32 = code_.builder.getI32Type();
  constexpr std::int64_t words_of_step = 4, steps = block_depth / step_depth;
  const std::int64_t of_part = tile_.m * row_bytes, of_step = shape.b_k_inner ? 2 * step_depth : step_depth * row_bytes;
  std::array<values, f32_parts> parts;
  for (const Value pair : load(weights, first_column, in_group)) {
    const auto divided = split_f32(code_, pair);
    for (std::size_t part = 0; part < parts.size(); ++part)
      parts[part].push_back(reinterpret(code_, divided[part], i32));
  }
  values words;
  for (const values& part : parts) words.insert(words.end(), part.begin(), part.end());
  std::vector<register_product> products;
  for (const part_product& each : part_products)
    for (std::int64_t step = 0; step < steps; ++step)
      products.push_back({(each.b * steps + step) * words_of_step, each.a * of_part + step * of_step});
  await_turn(warpgroup);
  const values sums =
      hopper_.multiply_registers(shape, words, rows, products, hopper_.number(0), hopper_.undefined_sums(shape));
  pass_turn(warpgroup);
  return sums;
}

void divided_weights::await_turn(Value warpgroup) const {
  hopper_.synchronize_threads(code_.add(warpgroup, first_turn), two_groups);
}
void divided_weights::pass_turn(Value warpgroup) const {
  hopper_.arrive_threads(code_.sub(hopper_.number(first_turn + 1), warpgroup), two_groups);
}
void divided_weights::end_blocks(Value warpgroup, Value count) const {
  const Value second = code_.equal(warpgroup, hopper_.number(1)),
              odd = code_.equal(code_.rem(count, 2), hopper_.number(1));
  code_.when(both(code_, second, odd), [&] {
    await_turn(warpgroup);
    pass_turn(warpgroup);
  });
}
void divided_weights::begin_turns(Value warpgroup) const {
  code_.when(code_.equal(warpgroup, hopper_.number(1)), [&] { pass_turn(warpgroup); });
}
void divided_weights::end_turns(Value warpgroup) const {
  code_.when(code_.equal(warpgroup, hopper_.number(0)), [&] { await_turn(warpgroup); });
}

}  // namespace kiln::gpu
