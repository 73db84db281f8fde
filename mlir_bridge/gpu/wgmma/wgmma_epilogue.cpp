#include "mlir_bridge/gpu/wgmma/wgmma_epilogue.hpp"

#include <algorithm>

#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

// Rows of a warp in a block of 64.
constexpr std::int64_t rows = 16;
// Bytes that one thread stores at a time.
constexpr std::int64_t store_bytes = 16;

std::int64_t bytes_of(element_type type) { return std::max(8, storage_bits(type)) / 8; }

// Part of an output in shared memory: 16 rows of up to 128 bytes. Consecutive rows start four banks apart.
struct slab {
  std::int64_t size, columns, pitch,
      offset;  // bytes of an element; columns; bytes of a row; bytes from the warp's memory
};

std::int64_t slab_columns(const kernel_emitter& e) {
  std::int64_t columns = 64;
  for (value v : e.outputs()) columns = std::min<std::int64_t>(columns, 128 / bytes_of(v.type().type));
  return columns;
}

std::vector<slab> make_slabs(const kernel_emitter& e) {
  std::vector<slab> result;
  std::int64_t offset = 0, columns = slab_columns(e);
  for (value v : e.outputs()) {
    const std::int64_t size = bytes_of(v.type().type);
    result.push_back({size, columns, columns * size + store_bytes, offset});
    offset += rows * result.back().pitch;
  }
  return result;
}

class writer {
 public:
  writer(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
         const wgmma_place& place, const values& sums, const values& second)
      : e_(e),
        code_(e.code),
        hopper_(hopper),
        problem_(problem),
        tile_(tile),
        place_(place),
        sums_(sums),
        second_(second),
        ev_(e),
        slabs_(make_slabs(e)) {
    masks_columns_ = problem.n % (tile.n * tile.cluster_n) != 0;
    batch_ = code_.to_index(place.batch);
  }

  void write() {
    const bool staged = epilogue_bytes(e_, problem_) > 0;
    const std::int64_t step = slab_columns(e_);
    for (std::int64_t block = 0; block < tile_.row_blocks(); ++block)
      for (std::int64_t column = 0; column < tile_.n; column += step) {
        if (!staged) {
          for (std::int64_t c = column; c < std::min(column + step, tile_.n); c += 8)
            for (int half = 0; half < 2; ++half) store_fragment(block, c, half);
          continue;
        }
        const std::int64_t columns = std::min(step, tile_.n - column);
        for (std::int64_t c = 0; c < columns; c += 8)
          for (int half = 0; half < 2; ++half) stage_fragment(block, column, c, half);
        hopper_.synchronize_warp();
        for (std::size_t i = 0; i < slabs_.size(); ++i) store_slab(i, block, column, columns);
        hopper_.synchronize_warp();
      }
  }

 private:
  // Register layout of a warpgroup's product: thread l of warp w holds rows 16 w + l / 4 and 16 w + l / 4 + 8, columns
  // 8 j + 2 (l % 4) and the next one.
  Value fragment(const values& sums, std::int64_t block, std::int64_t column, int half) {
    const auto first = static_cast<std::size_t>(block * tile_.n / 2 + column / 8 * 4 + half * 2);
    Value pair[2] = {sums[first], sums[first + 1]};
    return code_.from_lanes(pair);
  }
  // Binds lanes [first, first + lanes) of the fragment.
  void bind(evaluator& ev, std::int64_t block, std::int64_t column, int half, std::int64_t first, std::int64_t lanes) {
    const auto part = [&](const values& sums) {
      const Value both = fragment(sums, block, column, half);
      return lanes == 1 ? code_.lane(both, first) : both;
    };
    ev.bind(e_.anchor_result(), part(sums_));
    if (!second_.empty()) ev.bind(problem_.second, part(second_));
  }
  Value row_of(std::int64_t block, int half) {
    return code_.add(code_.add(place_.row, code_.div(place_.lane, 4)), block * 64 + half * 8);
  }
  Value column_of(std::int64_t column) {
    return code_.add(code_.add(place_.column, code_.mul(code_.rem(place_.lane, 4), 2)), column);
  }

  std::pair<Value, Value> result_row(Value row) {
    return gpu::result_row(e_, hopper_, problem_, tile_, row, place_.own_row);
  }
  std::int64_t result_rows() const {
    return problem_.image ? problem_.image->images * problem_.image->out_height * problem_.image->out_width
                          : problem_.m;
  }

  position where(Value row, Value column, std::int64_t lanes) {
    position at = problem_.locate(batch_, code_.to_index(row));
    at.push_back({code_.to_index(column), lanes > 1 ? 1 : 0, {}, 0, problem_.n, lanes});
    return at;
  }

  void store_fragment(std::int64_t block, std::int64_t column, int half) {
    const auto [row, exists] = result_row(row_of(block, half));
    Value result = row, first = column_of(column);
    const std::int64_t lanes = problem_.n % 2 ? 1 : 2;
    for (std::int64_t i = 0; i < 2; i += lanes) {
      Value at = code_.add(first, i);
      Value inside = both(exists, masks_columns_ ? code_.less(at, hopper_.number(problem_.n)) : Value());
      auto store = [&] {
        evaluator ev(e_);
        bind(ev, block, column, half, i, lanes);
        ev.store_outputs(where(result, at, lanes), lanes);
      };
      if (inside) code_.when(inside, store);
      else store();
    }
  }

  // Inputs of the epilogue are read at positions inside the tensor, even for sums outside, which are not stored.
  void stage_fragment(std::int64_t block, std::int64_t column, std::int64_t c, int half) {
    Value row = result_row(row_of(block, half)).first, first = column_of(column + c);
    if (masks_columns_) first = code_.min(first, problem_.n - 2);
    bind(ev_, block, column + c, half, 0, 2);
    position at = where(row, first, 2);
    Value line = code_.add(code_.div(place_.lane, 4), half * 8), inner = code_.mul(code_.rem(place_.lane, 4), 2);
    for (std::size_t i = 0; i < slabs_.size(); ++i) {
      value output = e_.outputs()[i];
      Value stored = code_.to_storage(ev_.at(output, at, 2), output.type().type);
      Value offset = code_.add(code_.add(code_.mul(line, slabs_[i].pitch), code_.mul(inner, slabs_[i].size)),
                               c * slabs_[i].size + slabs_[i].offset);
      code_.make<mlir::LLVM::StoreOp>(stored, byte_address(place_.shared, offset),
                                      static_cast<unsigned>(2 * slabs_[i].size));
    }
  }

  void store_slab(std::size_t i, std::int64_t block, std::int64_t column, std::int64_t columns) {
    const slab& s = slabs_[i];
    const std::int64_t pieces = columns * s.size / store_bytes, elements = store_bytes / s.size, lines = 32 / pieces;
    mlir::Type words = mlir::VectorType::get({4}, code_.builder.getI32Type());
    Value piece = code_.rem(place_.lane, pieces), first_line = code_.div(place_.lane, pieces);
    buffer output = e_.output(i);
    Value pointer = e_.pointer(output);
    for (std::int64_t line = 0; line < rows; line += lines) {
      Value own = code_.add(first_line, line);
      const auto found = result_row(code_.add(code_.add(place_.row, own), block * 64));
      Value result = found.first;
      auto copy = [&] {
        Value from = byte_address(
            place_.shared, code_.add(code_.add(code_.mul(own, s.pitch), code_.mul(piece, store_bytes)), s.offset));
        Value data = code_.make<mlir::LLVM::LoadOp>(words, from, static_cast<unsigned>(store_bytes));
        Value row = code_.to_index(result),
              first = code_.to_index(code_.add(code_.add(place_.column, code_.mul(piece, elements)), column));
        if (!problem_.open_m) row = code_.add(code_.mul(batch_, result_rows()), row);
        Value offset = code_.add(code_.mul(row, problem_.n), first);
        code_.make<mlir::LLVM::StoreOp>(data, code_.address(pointer, offset, output.type),
                                        static_cast<unsigned>(store_bytes));
      };
      Value first = code_.add(code_.add(place_.column, code_.mul(piece, elements)), column);
      Value inside = both(found.second, masks_columns_ ? code_.less(first, hopper_.number(problem_.n)) : Value());
      // Narrow slabs need fewer threads than there are.
      if (lines > rows) inside = both(inside, code_.less(own, hopper_.number(rows)));
      if (inside) code_.when(inside, copy);
      else copy();
    }
  }

  Value both(Value a, Value b) { return gpu::both(code_, a, b); }
  Value byte_address(Value pointer, Value offset) { return gpu::byte_address(code_, pointer, offset); }

  kernel_emitter& e_;
  code_builder& code_;
  hopper_code& hopper_;
  const wgmma_problem& problem_;
  const wgmma_tile& tile_;
  const wgmma_place& place_;
  const values &sums_, &second_;
  evaluator ev_;
  std::vector<slab> slabs_;
  bool masks_columns_;
  Value batch_;
};

}  // namespace

bool overlaps_rows(const wgmma_problem& problem, const wgmma_tile& tile) {
  return !problem.image && problem.a.k_inner && problem.m > tile.m && problem.m % (tile.m * tile.cluster_m) != 0;
}

std::pair<Value, Value> result_row(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem,
                                   const wgmma_tile& tile, Value row, Value own_row) {
  code_builder& code = e.code;
  if (problem.image) return problem.result_row(row);
  if (problem.open_m) {
    const Value exists = code.less(row, hopper.narrow(e.size(*problem.open_m)));
    return {e.min(row, *problem.open_m - 1), both(code, exists, code.less(own_row, code.add(row, 1)))};
  }
  if (problem.m % (tile.m * tile.cluster_m) == 0) return {row, Value()};
  if (overlaps_rows(problem, tile)) return {row, code.less(own_row, code.add(row, 1))};
  return {code.min(row, problem.m - 1), code.less(row, hopper.number(problem.m))};
}

std::int64_t epilogue_bytes(const kernel_emitter& e, const wgmma_problem& problem) {
  std::int64_t bytes = 0;
  for (value v : e.outputs())
    if (problem.n * bytes_of(v.type().type) % store_bytes) return 0;
  for (const slab& s : make_slabs(e)) bytes += rows * s.pitch;
  // Two slabs of 128-byte rows.
  constexpr std::int64_t most = 4608;
  return bytes <= most ? bytes : 0;
}

void emit_wgmma_epilogue(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
                         const wgmma_place& place, const values& sums, const values& second) {
  writer(e, hopper, problem, tile, place, sums, second).write();
}

}  // namespace kiln::gpu
