// Tiles on the vector unit: every thread computes part_m x part_n sums, with rows and columns interleaved over the
// threads. Used for types without a matrix instruction and on GPUs without a matrix unit.
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/multiplier.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

chunk_product::chunk_product(kernel_emitter& e, const product_types& types)
    : code_(e.code), types_(types), kind_(kind::multiply_add) {
  const gpu_row& row = e.target.gpu;
  if (types.factor == element_type::f16 && row.dots != dot_unit::none) kind_ = kind::dot_f16;
  // RDNA 3 and later have an instruction with a separate signedness for each factor instead.
  const bool mixed = row.matrix == matrix_unit::wmma_gfx11 || row.matrix == matrix_unit::wmma_gfx12;
  if (types.factor == element_type::i8 && row.dots == dot_unit::f16_and_i8)
    kind_ = mixed ? kind::dot_i8_mixed : kind::dot_i8;
}

values chunk_product::split(Value chunk, element_type type) const {
  values pieces;
  if (kind_ != kind::multiply_add) {
    for (std::int64_t w = 0; w < 4; ++w) {
      Value word = code_.lane(chunk, w);
      pieces.push_back(kind_ == kind::dot_f16
                           ? reinterpret(code_, word, mlir::VectorType::get({2}, code_.builder.getF16Type()))
                           : word);
    }
    return pieces;
  }
  const std::int64_t lanes = elements_of_chunk(types_.factor);
  Value elements =
      code_.to_compute(reinterpret(code_, chunk, code_builder::with_lanes(code_.storage_type(type), lanes)), type);
  elements = convert_element(code_, elements, type, types_.sum);
  for (std::int64_t i = 0; i < lanes; ++i) pieces.push_back(code_.lane(elements, i));
  return pieces;
}

Value chunk_product::add_product(Value a, Value b, Value sum) const {
  mlir::Type i1 = code_.builder.getI1Type();
  Value no = code_.integer(i1, 0), yes = code_.integer(i1, 1);
  switch (kind_) {
    case kind::dot_f16: return call_intrinsic(code_, "llvm.amdgcn.fdot2", sum.getType(), {a, b, sum, no});
    case kind::dot_i8: return call_intrinsic(code_, "llvm.amdgcn.sdot4", sum.getType(), {a, b, sum, no});
    case kind::dot_i8_mixed:
      return call_intrinsic(code_, "llvm.amdgcn.sudot4", sum.getType(),
                            {types_.unsigned_a ? no : yes, a, yes, b, sum, no});
    case kind::multiply_add: break;
  }
  return is_float(types_.sum)
             ? code_.fma(a, b, sum)
             : Value(code_.make<mlir::arith::AddIOp>(code_.make<mlir::arith::MulIOp>(a, b).getResult(), sum));
}

namespace {

class vector_multiplier final : public multiplier {
 public:
  vector_multiplier(kernel_emitter& e, workgroup& group, const tile_shape& tile, const product_types& types,
                    std::int64_t slab_bytes)
      : code_(e.code),
        family_(e.target.family),
        group_(group),
        tile_(tile),
        types_(types),
        product_(e, types),
        shifted_(is_shifted(e.target.gpu, types)),
        across_m_(tile.m / tile.part_m),
        across_n_(tile.n / tile.part_n) {
    x_ = code_.rem(group.thread(), across_n_), y_ = code_.div(group.thread(), across_n_);
    slabs_ = {.rows = across_m_,
              .columns = tile.n,
              .members = group.threads(),
              .member = group.thread(),
              .owner = code_.constant(0),
              .first_row = code_.constant(0),
              .first_column = code_.constant(0)};
    const std::int64_t parts = parts_of_slab(tile.part_m, slabs_.elements(), storage_bits(types.sum) / 8, slab_bytes);
    slabs_.rows *= parts;
    slabs_.count = tile.part_m / parts;
  }

  values zeros() override {
    return values(static_cast<std::size_t>((tile_.part_m + (shifted_ ? 1 : 0)) * tile_.part_n),
                  code_.number(code_.scalar_type(types_.sum), 0));
  }

  values multiply(Value a, Value b, values sums) override {
    for (std::int64_t c = 0; c < tile_.chunks; ++c) {
      std::vector<values> left, right;
      for (Value chunk : read(a, y_, across_m_, tile_.part_m, c)) left.push_back(product_.split_a(chunk));
      for (Value chunk : read(b, x_, across_n_, tile_.part_n, c)) right.push_back(product_.split_b(chunk));
      for (std::size_t piece = 0; piece < left[0].size(); ++piece) {
        for (std::size_t j = 0; shifted_ && j < right.size(); ++j) {
          Value& sum = sums[left.size() * right.size() + j];
          sum = product_.add_shift(right[j][piece], sum);
        }
        for (std::size_t i = 0; i < left.size(); ++i)
          for (std::size_t j = 0; j < right.size(); ++j) {
            Value& sum = sums[i * right.size() + j];
            sum = product_.add_product(left[i][piece], right[j][piece], sum);
          }
      }
      // Without this barrier the compiler loads all chunks at once and runs out of registers.
      if (c + 1 < tile_.chunks) schedule_barrier(code_, family_, passing::nothing);
    }
    return sums;
  }

  values finished(values sums) override {
    if (!shifted_) return sums;
    const auto columns = static_cast<std::size_t>(tile_.part_n), count = sums.size() - columns;
    for (std::size_t i = 0; i < count; ++i)
      sums[i] = code_.make<mlir::arith::SubIOp>(sums[i], sums[count + i % columns]);
    sums.resize(count);
    return sums;
  }

  void write_slab(std::int64_t i, const values& sums, Value memory) override {
    const std::int64_t bytes = storage_bits(types_.sum) / 8;
    Value base = byte_address(code_, memory, code_.mul(code_.add(code_.mul(y_, slabs_.pitch()), x_), bytes));
    const std::int64_t parts = tile_.part_m / slabs_.count;
    for (std::int64_t part = 0; part < parts; ++part)
      for (std::int64_t j = 0; j < tile_.part_n; ++j)
        code_.make<mlir::LLVM::StoreOp>(
            sums[static_cast<std::size_t>((i * parts + part) * tile_.part_n + j)],
            byte_address(code_, base, (part * across_m_ * slabs_.pitch() + j * across_n_) * bytes),
            static_cast<unsigned>(bytes));
  }

  void synchronize() override { group_.barrier(); }

 private:
  // Reads chunk c of this thread's rows: first, first + step, ...
  values read(Value tile, Value first, std::int64_t step, std::int64_t count, std::int64_t c) {
    values result;
    const std::int64_t row_bytes = tile_.chunks * chunk_bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      // The swizzle of rows that are eight apart is the same.
      Value row = code_.add(first, step % 8 ? i * step : 0);
      Value chunk = code_.mul(bit_xor(code_, code_.constant(c), swizzle(code_, row, tile_.chunks)), chunk_bytes);
      Value address = byte_address(code_, tile, code_.add(code_.mul(first, row_bytes), chunk));
      result.push_back(load_chunk(code_, byte_address(code_, address, i * step * row_bytes)));
    }
    return result;
  }

  code_builder& code_;
  target_family family_;
  workgroup& group_;
  tile_shape tile_;
  product_types types_;
  chunk_product product_;
  bool shifted_;
  std::int64_t across_m_, across_n_;
  Value x_, y_;
};

}  // namespace

std::unique_ptr<multiplier> make_vector_multiplier(kernel_emitter& e, workgroup& group, const tile_shape& tile,
                                                   const product_types& types, std::int64_t slab_bytes) {
  return std::make_unique<vector_multiplier>(e, group, tile, types, slab_bytes);
}

}  // namespace kiln::gpu
