// Tiles of matrix instructions. Every wave reads its fragments as whole chunks (matrix_instruction.hpp).
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/multiplier.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"
#include "mlir_bridge/gpu/matrix_product.hpp"

namespace kiln::gpu {

namespace {

class matrix_multiplier final : public multiplier {
 public:
  matrix_multiplier(kernel_emitter& e, workgroup& group, const tile_shape& tile, const product_types& types,
                    std::int64_t slab_bytes)
      : code_(e.code),
        family_(e.target.family),
        group_(group),
        tile_(tile),
        product_(e, *tile.instruction, types),
        shifted_(is_shifted(e.target.gpu, types)) {
    const matrix_instruction& unit = *tile.instruction;
    const std::int64_t waves_m = tile.m / tile.part_m;
    Value wave_m = code_.mul(code_.rem(group.wave(), waves_m), tile.part_m),
          wave_n = code_.mul(code_.div(group.wave(), waves_m), tile.part_n);
    a_ = side(unit.a, wave_m, tile.part_m / unit.m, unit.m);
    b_ = side(unit.b, wave_n, tile.part_n / unit.n, unit.n);
    slabs_ = {.rows = unit.m,
              .columns = tile.part_n,
              .members = group.wave_size(),
              .member = group.lane(),
              .owners = group.waves(),
              .owner = group.wave(),
              .first_row = wave_m,
              .first_column = wave_n};
    const std::int64_t tiles = parts_of_slab(a_.tiles, slabs_.elements(), 4, slab_bytes);
    slabs_.rows *= tiles;
    slabs_.count = a_.tiles / tiles;
  }

  values zeros() override { return product_.zeros((a_.tiles + (shifted_ ? 1 : 0)) * b_.tiles); }

  // On AMD GPUs, chunks of the next group are read before those of a group are multiplied: LLVM's scheduler would read
  // them behind its products, and wait.
  values multiply(Value a, Value b, values sums) override {
    const std::int64_t group_chunks = tile_.instruction->a.chunks;
    const bool ahead = family_ == target_family::amdgpu;
    factors next = read(a, b, 0);
    for (std::int64_t first = 0; first < tile_.chunks; first += group_chunks) {
      const factors now = std::move(next);
      const bool more = first + group_chunks < tile_.chunks;
      if (more && ahead) {
        next = read(a, b, first + group_chunks);
        schedule_barrier(code_, family_, passing::arithmetic);
      }
      multiply(now, sums);
      if (more && ahead) schedule_barrier(code_, family_, passing::arithmetic);
      if (more && !ahead) next = read(a, b, first + group_chunks);
    }
    return sums;
  }

  values finished(values sums) override {
    if (!shifted_) return sums;
    const std::size_t row = static_cast<std::size_t>(b_.tiles * product_.values_per_tile()), count = sums.size() - row;
    for (std::size_t i = 0; i < count; ++i) sums[i] = code_.make<mlir::arith::SubIOp>(sums[i], sums[count + i % row]);
    sums.resize(count);
    return sums;
  }

  void write_slab(std::int64_t i, const values& sums, Value memory) override {
    const std::int64_t per_tile = product_.values_per_tile(), tiles = a_.tiles / slabs_.count;
    for (std::int64_t t = 0; t < tiles; ++t)
      for (std::int64_t j = 0; j < b_.tiles; ++j) {
        auto sum = std::span(sums).subspan(static_cast<std::size_t>(((i * tiles + t) * b_.tiles + j) * per_tile),
                                           static_cast<std::size_t>(per_tile));
        product_.write(sum, group_.lane(), byte_address(code_, memory, t * tile_.instruction->m * slabs_.pitch() * 4),
                       j * tile_.instruction->n, slabs_.pitch());
      }
  }

  void synchronize() override { wave_barrier(code_, family_); }

 private:
  struct side_of_wave {
    // Offset of the lane's row in the tile, without the chunk.
    Value bytes;
    // Swizzled index of the lane's chunk within a group of chunks.
    Value chunk;
    std::int64_t tiles = 0, rows_of_tile = 0;
  };

  side_of_wave side(const factor_map& map, Value first_row, std::int64_t tiles, std::int64_t rows_of_tile) {
    Value row = code_.rem(code_.div(group_.lane(), map.row_divisor), map.row_modulus);
    Value chunk =
        map.whole_row ? code_.constant(0) : code_.rem(code_.div(group_.lane(), map.chunk_divisor), map.chunks);
    return {code_.mul(code_.add(first_row, row), tile_.chunks * chunk_bytes),
            bit_xor(code_, chunk, swizzle(code_, row, tile_.chunks)), tiles, rows_of_tile};
  }

  // The fragments of all tiles for a group of chunks.
  struct factors {
    std::vector<fragment> left, right;
  };
  factors read(Value a, Value b, std::int64_t first) {
    factors result{read(a_, tile_.instruction->a, a, first), read(b_, tile_.instruction->b, b, first)};
    if (shifted_) result.left.push_back(product_.minus_128());
    return result;
  }

  void multiply(const factors& of, values& sums) {
    const std::int64_t per_tile = product_.values_per_tile();
    for (std::int64_t step = 0; step < product_.steps_of_fragment(); ++step)
      for (std::int64_t i = 0; i < std::ssize(of.left); ++i)
        for (std::int64_t j = 0; j < b_.tiles; ++j) {
          // Visit columns in alternating directions, so that consecutive instructions share a factor.
          const std::int64_t column = i % 2 ? b_.tiles - 1 - j : j;
          auto at = sums.begin() + (i * b_.tiles + column) * per_tile;
          product_.add(of.left[static_cast<std::size_t>(i)], of.right[static_cast<std::size_t>(column)], step,
                       std::span(at, static_cast<std::size_t>(per_tile)));
        }
  }

  // Reads the lane's chunks of every tile for the group of chunks that begins at `first`.
  std::vector<fragment> read(const side_of_wave& side, const factor_map& map, Value memory, std::int64_t first) {
    values addresses;
    for (std::int64_t c = 0; c < (map.whole_row ? map.chunks : 1); ++c) {
      // A group begins at a multiple of a power of two that exceeds every lane's chunk index, so XOR moves the swizzled
      // chunk to the group.
      Value chunk = code_.mul(bit_xor(code_, side.chunk, code_.constant(first + c)), chunk_bytes);
      addresses.push_back(byte_address(code_, memory, code_.add(side.bytes, chunk)));
    }
    std::vector<fragment> fragments;
    for (std::int64_t i = 0; i < side.tiles; ++i) {
      fragment f;
      for (std::int64_t part = 0; part < map.parts; ++part)
        for (Value address : addresses)
          f.chunks.push_back(load_chunk(
              code_, byte_address(code_, address,
                                  (i * side.rows_of_tile + part * map.part_rows) * tile_.chunks * chunk_bytes)));
      fragments.push_back(std::move(f));
    }
    return fragments;
  }

  code_builder& code_;
  target_family family_;
  workgroup& group_;
  tile_shape tile_;
  matrix_product product_;
  bool shifted_;
  side_of_wave a_, b_;
};

}  // namespace

std::unique_ptr<multiplier> make_matrix_multiplier(kernel_emitter& e, workgroup& group, const tile_shape& tile,
                                                   const product_types& types, std::int64_t slab_bytes) {
  return std::make_unique<matrix_multiplier>(e, group, tile, types, slab_bytes);
}

}  // namespace kiln::gpu
