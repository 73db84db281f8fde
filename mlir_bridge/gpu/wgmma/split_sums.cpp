#include "mlir_bridge/gpu/wgmma/split_sums.hpp"

#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

values add_splits(code_builder& code, hopper_code& hopper, const wgmma_tile& tile, const values& sums,
                  const split_place& place) {
  constexpr std::int64_t group_threads = 128;
  const std::int64_t threads = tile.consumers * group_threads, of_block = tile.n / 2, ours = of_block / tile.splits;
  const bool floats = sums[0].getType().isF32();
  // Wait until no consumer reads the stages any more.
  hopper.synchronize_threads(1, threads);
  const auto offset = [&](Value i) { return code.mul(code.add(code.mul(i, threads), place.thread), 4); };
  for (std::size_t i = 0; i < sums.size(); ++i)
    code.make<mlir::LLVM::StoreOp>(
        sums[i], byte_address(code, place.memory, offset(hopper.number(static_cast<std::int64_t>(i)))), 4u);
  hopper.synchronize_cluster();
  values result;
  for (std::int64_t block = 0; block < tile.row_blocks(); ++block)
    for (std::int64_t i = 0; i < ours; ++i) {
      const Value address = code.add(place.address, offset(code.add(code.mul(place.rank, ours), block * of_block + i)));
      Value sum;
      for (std::int64_t split = 0; split < tile.splits; ++split) {
        Value word = hopper.load_word_of(hopper.number(split), address);
        if (floats) word = code.make<mlir::arith::BitcastOp>(sums[0].getType(), word);
        if (!sum) sum = word;
        else if (floats) sum = code.make<mlir::arith::AddFOp>(sum, word);
        else sum = code.make<mlir::arith::AddIOp>(sum, word);
      }
      result.push_back(sum);
    }
  return result;
}

values exchange_halves(code_builder& code, hopper_code& hopper, const values& sums, Value warpgroup, Value in_group,
                       Value own, Value other) {
  constexpr std::int64_t group_threads = 128, threads = 2 * group_threads, barrier = 1;
  const std::size_t half = sums.size() / 2;
  const Value first = code.equal(warpgroup, hopper.number(0));
  const auto offset = [&](std::size_t i) {
    return code.mul(code.add(in_group, static_cast<std::int64_t>(i) * group_threads), 4);
  };
  // A warpgroup may still read what it exchanged for the tile before.
  hopper.synchronize_threads(barrier, threads);
  for (std::size_t i = 0; i < half; ++i)
    code.make<mlir::LLVM::StoreOp>(code.select(first, sums[half + i], sums[i]), byte_address(code, own, offset(i)), 4u);
  hopper.synchronize_threads(barrier, threads);
  values result;
  for (std::size_t i = 0; i < half; ++i) {
    const Value word = code.make<mlir::LLVM::LoadOp>(sums[i].getType(), byte_address(code, other, offset(i)), 4u);
    result.push_back(code.make<mlir::arith::AddFOp>(code.select(first, sums[i], sums[half + i]), word));
  }
  hopper.synchronize_threads(barrier, threads);
  return result;
}

}  // namespace kiln::gpu
