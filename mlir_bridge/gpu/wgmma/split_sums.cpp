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

}  // namespace kiln::gpu
