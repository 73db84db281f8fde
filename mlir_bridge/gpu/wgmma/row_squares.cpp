#include "mlir_bridge/gpu/wgmma/row_squares.hpp"

#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t row_bytes = 128, group_threads = 128;
// A row of a block has 8 chunks, so a warpgroup has those of 16 rows.
constexpr std::int64_t chunks_of_row = row_bytes / chunk_bytes, rows_at_once = group_threads / chunks_of_row;

}  // namespace

std::int64_t row_squares::count() const {
  return problem_.epsilon ? ceil_div(tile_.a_rows() * chunks_of_row, group_threads) : 0;
}

// Thread t has chunk t % 8 of the rows t / 8 + 16 i. Where there are fewer rows, the last threads read what follows,
// and nobody reads their sums. Swizzling moves chunks within a row only.
values row_squares::add(Value stages, Value stage, Value in_group, values sums) const {
  const element_type type = problem_.a.memory.type;
  const std::int64_t lanes = elements_of_chunk(type);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Value chunk = code_.add(in_group, static_cast<std::int64_t>(i) * group_threads);
    const Value place = code_.add(code_.mul(stage, tile_.stage_bytes() / chunk_bytes), chunk);
    const Value elements = code_.load(stages, code_.mul(code_.to_index(place), lanes), type, lanes, lanes);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const Value element = code_.lane(elements, lane);
      sums[i] = code_.fma(element, element, sums[i]);
    }
  }
  return sums;
}

void row_squares::scale(values& sums, const values& squares, Value memory, Value in_group) const {
  if (squares.empty()) return;
  const mlir::Type f32 = code_.builder.getF32Type();
  const auto place = [&](Value row) { return byte_address(code_, memory, code_.mul(row, 4)); };
  // The scales of the tile before have been read.
  hopper_.synchronize_threads(1, group_threads);
  for (std::size_t i = 0; i < squares.size(); ++i) {
    Value total = squares[i];
    for (std::int64_t mask = 1; mask < chunks_of_row; mask *= 2)
      total = code_.make<mlir::arith::AddFOp>(total, hopper_.exchange(total, mask));
    const Value mean = code_.make<mlir::arith::MulFOp>(total, code_.number(f32, 1.0 / static_cast<double>(problem_.k)));
    const Value root = code_.make<mlir::math::SqrtOp>(
        code_.make<mlir::arith::AddFOp>(mean, code_.number(f32, *problem_.epsilon)).getResult());
    const Value scale = code_.make<mlir::arith::DivFOp>(code_.number(f32, 1), root),
                row = code_.add(code_.div(in_group, chunks_of_row), static_cast<std::int64_t>(i) * rows_at_once);
    code_.when(code_.equal(code_.rem(in_group, chunks_of_row), hopper_.number(0)),
               [&] { code_.make<mlir::LLVM::StoreOp>(scale, place(row), 4u); });
  }
  hopper_.synchronize_threads(1, group_threads);
  // Registers alternate between a thread's two rows (wgmma_epilogue.cpp).
  const Value first = code_.add(code_.mul(code_.div(in_group, 32), 16), code_.div(code_.rem(in_group, 32), 4));
  Value scales[2];
  for (std::int64_t half = 0; half < 2; ++half)
    scales[half] = code_.make<mlir::LLVM::LoadOp>(f32, place(code_.add(first, half * 8)), 4u);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = code_.make<mlir::arith::MulFOp>(sums[i], scales[i / 2 % 2]);
}

}  // namespace kiln::gpu
