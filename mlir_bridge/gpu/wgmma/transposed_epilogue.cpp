#include "mlir_bridge/gpu/wgmma/transposed_epilogue.hpp"

#include <algorithm>
#include <numeric>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t group_threads = 128, block_rows = 64, chunks_of_row = 8;

}  // namespace

// Columns that a thread completes at a time: at most 16 bytes of an output, and fewer if threads would be idle.
std::int64_t transposed_epilogue::lanes() const {
  std::int64_t lanes = 8;
  for (value v : e_.outputs())
    lanes = std::min<std::int64_t>(lanes, std::max<std::int64_t>(1, 128 / std::max(8, storage_bits(v.type().type))));
  lanes = std::gcd(lanes, std::gcd(part(), problem_.n));
  while (lanes > 2 && problem_.m * part() / lanes < group_threads) lanes /= 2;
  return lanes;
}

void transposed_epilogue::prefetch(Value column, Value in_group) const {
  const value result = e_.anchor_result();
  if (problem_.batch != 1) return;
  // A row of our columns is less than a line of the cache.
  const Value first = code_.add(column, code_.mul(rank_, part()));
  for (value v : e_.fusion.parameters()) {
    const std::optional<buffer> memory = e_.in_memory(v);
    if (!memory || v.type().dims != result.type().dims || v == problem_.a.source || storage_bits(memory->type) < 8)
      continue;
    code_.when(code_.less(in_group, hopper_.number(problem_.m)), [&] {
      const Value place = code_.min(code_.add(code_.mul(in_group, problem_.n), first), problem_.m * problem_.n - 1);
      gpu::prefetch(code_, code_.address(e_.pointer(*memory), code_.to_index(place), memory->type));
    });
  }
}

// Register layout: thread l of warp w has, of each block of 64 columns, 16 w + l / 4 and 8 more, of the rows 8 j + 2
// (l % 4) and the next one. The memory of a workgroup is [product][rank of the sender][row][column].
void transposed_epilogue::send_sums(const values& sums, Value in_group) const {
  const std::int64_t rows = tile_.a_rows(), of_sender = rows * pitch(), blocks = tile_.n / block_rows,
                     blocks_of_product = blocks / problem_.products();
  const Value lane = code_.rem(in_group, 32), warp = code_.div(in_group, 32);
  const Value first_column = code_.add(code_.mul(warp, 16), code_.div(lane, 4)),
              first_row = code_.mul(code_.rem(lane, 4), 2);
  const Value base = tile_.splits > 1 ? hopper_.shared_address(memory_) : Value();
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::int64_t product = block / blocks_of_product,
                         offset = block % blocks_of_product * block_rows + half * 8;
      const Value column = code_.add(first_column, offset), owner = code_.div(column, part()),
                  place = code_.add(code_.mul(rank_, of_sender),
                                    code_.add(code_.mul(first_row, pitch()), code_.rem(column, part())));
      for (std::int64_t j = 0; j < rows / 8; ++j)
        for (std::int64_t next = 0; next < 2; ++next) {
          const Value sum = sums[static_cast<std::size_t>(block * rows / 2 + j * 4 + half * 2 + next)];
          const Value bytes =
              code_.mul(code_.add(place, product * tile_.splits * of_sender + (j * 8 + next) * pitch()), 4);
          if (base) hopper_.store_word_of(owner, code_.add(base, bytes), sum);
          else code_.make<mlir::LLVM::StoreOp>(sum, byte_address(code_, memory_, bytes), 4u);
        }
    }
}

// Behind the sums: [rank of the sender][row]. Every workgroup needs those of all.
void transposed_epilogue::send_squares(const values& squares, Value in_group) const {
  const std::int64_t begin = problem_.products() * tile_.splits * tile_.a_rows() * pitch();
  for (std::size_t i = 0; i < squares.size(); ++i) {
    Value total = squares[i];
    for (std::int64_t mask = 1; mask < chunks_of_row; mask *= 2)
      total = code_.make<mlir::arith::AddFOp>(total, hopper_.exchange(total, mask));
    const Value row =
        code_.add(code_.div(in_group, chunks_of_row), static_cast<std::int64_t>(i) * (group_threads / chunks_of_row));
    const Value bytes = code_.mul(code_.add(code_.add(code_.mul(rank_, tile_.a_rows()), row), begin), 4);
    const Value receiver = code_.rem(in_group, chunks_of_row);
    Value sends = code_.less(receiver, hopper_.number(tile_.splits));
    if ((static_cast<std::int64_t>(i) + 1) * (group_threads / chunks_of_row) > tile_.a_rows())
      sends = both(code_, sends, code_.less(row, hopper_.number(tile_.a_rows())));
    code_.when(sends, [&] {
      if (tile_.splits > 1) hopper_.store_word_of(receiver, code_.add(hopper_.shared_address(memory_), bytes), total);
      else code_.make<mlir::LLVM::StoreOp>(total, byte_address(code_, memory_, bytes), 4u);
    });
  }
}

Value transposed_epilogue::scale_of(Value row) const {
  const std::int64_t begin = problem_.products() * tile_.splits * tile_.a_rows() * pitch();
  const mlir::Type f32 = code_.builder.getF32Type();
  Value sum;
  for (std::int64_t split = 0; split < tile_.splits; ++split) {
    const Value bytes = code_.mul(code_.add(row, begin + split * tile_.a_rows()), 4);
    const Value word = code_.make<mlir::LLVM::LoadOp>(f32, byte_address(code_, memory_, bytes), 4u);
    sum = sum ? code_.make<mlir::arith::AddFOp>(sum, word).getResult() : word;
  }
  const Value mean = code_.make<mlir::arith::MulFOp>(sum, code_.number(f32, 1.0 / static_cast<double>(problem_.k)));
  const Value root = code_.make<mlir::math::SqrtOp>(
      code_.make<mlir::arith::AddFOp>(mean, code_.number(f32, *problem_.epsilon)).getResult());
  return code_.make<mlir::arith::DivFOp>(code_.number(f32, 1), root);
}

Value transposed_epilogue::total(std::int64_t product, Value row, Value column, std::int64_t lanes) const {
  const std::int64_t of_sender = tile_.a_rows() * pitch();
  const mlir::Type type = code_builder::with_lanes(code_.builder.getF32Type(), lanes);
  const Value place = code_.add(code_.mul(row, pitch()), column);
  Value sum;
  for (std::int64_t split = 0; split < tile_.splits; ++split) {
    const Value bytes = code_.mul(code_.add(place, (product * tile_.splits + split) * of_sender), 4);
    const Value word = code_.make<mlir::LLVM::LoadOp>(type, byte_address(code_, memory_, bytes),
                                                      static_cast<unsigned>(std::min<std::int64_t>(16, lanes * 4)));
    sum = sum ? code_.make<mlir::arith::AddFOp>(sum, word).getResult() : word;
  }
  return sum;
}

void transposed_epilogue::write(const values& sums, const values& squares, Value column, Value in_group) const {
  // The warpgroup may still read what it exchanged for the tile before.
  if (tile_.splits == 1) hopper_.synchronize_threads(1, group_threads);
  send_sums(sums, in_group);
  send_squares(squares, in_group);
  if (tile_.splits > 1) hopper_.arrive_at_cluster(), hopper_.wait_for_cluster();
  else hopper_.synchronize_threads(1, group_threads);

  struct result {
    position where;
    Value counts;
    values outputs;
  };
  std::vector<result> results;
  const std::int64_t lanes = this->lanes(), across = part() / lanes, vectors = problem_.m * across;
  for (std::int64_t first = 0; first < vectors; first += group_threads) {
    result r;
    Value vector = code_.add(in_group, first);
    if (first + group_threads > vectors) {
      r.counts = code_.less(vector, hopper_.number(vectors));
      vector = code_.min(vector, vectors - 1);
    }
    const Value row = code_.div(vector, across), inside = code_.mul(code_.rem(vector, across), lanes);
    Value at = code_.add(code_.add(column, code_.mul(rank_, part())), inside);
    if (problem_.n % (tile_.n / problem_.products()) != 0) {
      r.counts = both(code_, r.counts, code_.less(at, hopper_.number(problem_.n)));
      at = code_.min(at, problem_.n - lanes);
    }
    r.where = problem_.locate(code_.constant(0), code_.to_index(row));
    r.where.push_back({code_.to_index(at), lanes > 1 ? 1 : 0, {}, 0, problem_.n, lanes});
    const Value scale = problem_.epsilon ? code_.splat(scale_of(row), lanes) : Value();
    evaluator ev(e_);
    const auto bind = [&](value v, std::int64_t product) {
      Value sum = total(product, row, inside, lanes);
      if (scale) sum = code_.make<mlir::arith::MulFOp>(sum, scale);
      ev.bind(v, sum);
    };
    bind(e_.anchor_result(), 0);
    if (problem_.second_b) bind(problem_.second, 1);
    for (value v : e_.outputs()) r.outputs.push_back(ev.at(v, r.where, lanes));
    results.push_back(std::move(r));
  }
  for (const result& r : results) {
    const auto store = [&] {
      evaluator ev(e_);
      for (std::size_t i = 0; i < r.outputs.size(); ++i) ev.store(e_.output(i), r.where, r.outputs[i]);
    };
    if (r.counts) code_.when(r.counts, store);
    else store();
  }
}

}  // namespace kiln::gpu
