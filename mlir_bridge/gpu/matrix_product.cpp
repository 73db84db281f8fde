#include "mlir_bridge/gpu/matrix_product.hpp"

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

matrix_product::matrix_product(kernel_emitter& e, const matrix_instruction& instruction, const product_types& types)
    : code_(e.code), unit_(instruction), types_(types), nvidia_(e.target.family == target_family::nvidia) {}

std::int64_t matrix_product::values_per_tile() const { return nvidia_ ? unit_.d.registers : 1; }

values matrix_product::zeros(std::int64_t tiles) const {
  const mlir::Type type = nvidia_ ? code_.scalar_type(types_.sum) : code_.type(types_.sum, unit_.d.registers);
  return values(static_cast<std::size_t>(tiles * values_per_tile()), code_.number(type, 0));
}

std::int64_t matrix_product::steps_of_fragment() const { return std::max<std::int64_t>(1, chunk_bytes / unit_.bytes); }

namespace {

// Returns the type in which the AMD intrinsics take a lane's part of a factor.
mlir::Type factor_type(code_builder& code, const matrix_instruction& unit) {
  const std::int64_t lanes = unit.bytes * 8 / storage_bits(unit.factor);
  switch (unit.factor) {
    case element_type::f32: return code.builder.getF32Type();
    case element_type::f16: return mlir::VectorType::get({lanes}, code.builder.getF16Type());
    case element_type::bf16:
      return mlir::VectorType::get({lanes}, unit.unit == matrix_unit::mfma_gfx950
                                                ? mlir::Type(code.builder.getBF16Type())
                                                : code.builder.getIntegerType(16));
    default:
      if (unit.bytes == 4) return code.builder.getI32Type();
      if (unit.bytes == 8 && unit.unit != matrix_unit::wmma_gfx12) return code.builder.getI64Type();
      return mlir::VectorType::get({unit.bytes / 4}, code.builder.getI32Type());
  }
}

bool is_wmma(matrix_unit unit) { return unit == matrix_unit::wmma_gfx11 || unit == matrix_unit::wmma_gfx12; }

}  // namespace

Value matrix_product::factor(const fragment& f, std::int64_t step) const {
  const std::int64_t words = unit_.bytes / 4;
  Value part = words > 4 ? joined(code_, f.chunks) : part_of(code_, f.chunks[0], step * words, words);
  return reinterpret(code_, part, factor_type(code_, unit_));
}

void matrix_product::add(const fragment& a, const fragment& b, std::int64_t step, std::span<Value> sums) const {
  const std::string name = "llvm." + std::string(unit_.intrinsic);
  if (nvidia_) {
    // PTX orders registers by word of k first, then by part.
    const bool mixed = types_.unsigned_a && name.ends_with(".s8");
    mlir::Type word = code_.builder.getI32Type();
    if (unit_.factor == element_type::f16) word = mlir::VectorType::get({2}, code_.builder.getF16Type());
    values operands;
    for (const fragment* f : {&a, &b})
      for (std::int64_t w = 0; w < unit_.bytes / 4; ++w)
        for (Value chunk : f->chunks)
          operands.push_back(reinterpret(code_, code_.lane(chunk, step * (unit_.bytes / 4) + w), word));
    operands.insert(operands.end(), sums.begin(), sums.end());
    mlir::Type scalar = sums[0].getType();
    auto result_type = mlir::LLVM::LLVMStructType::getLiteral(code_.builder.getContext(),
                                                              llvm::SmallVector<mlir::Type>(sums.size(), scalar));
    // The name of an instruction with equal factors has their type once.
    Value result =
        call_intrinsic(code_, mixed ? name.substr(0, name.size() - 2) + "u8.s8" : name, result_type, operands);
    for (std::size_t r = 0; r < sums.size(); ++r)
      sums[r] = code_.make<mlir::LLVM::ExtractValueOp>(result, static_cast<std::int64_t>(r));
    return;
  }
  Value left = factor(a, step), right = factor(b, step);
  if (is_wmma(unit_.unit)) {
    Value yes = code_.integer(code_.builder.getI1Type(), 1), no = code_.integer(code_.builder.getI1Type(), 0);
    if (unit_.factor == element_type::i8)
      sums[0] =
          call_intrinsic(code_, name, sums[0].getType(), {types_.unsigned_a ? no : yes, left, yes, right, sums[0], no});
    else sums[0] = call_intrinsic(code_, name, sums[0].getType(), {left, right, sums[0]});
    return;
  }
  Value none = code_.integer(code_.builder.getI32Type(), 0);
  sums[0] = call_intrinsic(code_, name, sums[0].getType(), {left, right, sums[0], none, none, none});
}

fragment matrix_product::minus_128() const {
  const auto count = static_cast<std::size_t>(unit_.a.parts * (unit_.a.whole_row ? unit_.a.chunks : 1));
  return {values(count, code_.integer(chunk_type(code_), all_minus_128))};
}

Value matrix_product::sum_register(std::span<const Value> sums, std::int64_t r) const {
  return nvidia_ ? sums[static_cast<std::size_t>(r)] : code_.lane(sums[0], r);
}

void matrix_product::write(std::span<const Value> sums, Value lane, Value memory, std::int64_t column,
                           std::int64_t pitch) const {
  const result_map& d = unit_.d;
  Value row = code_.mul(code_.div(lane, d.row_lanes), d.row_scale),
        first = code_.mul(code_.rem(lane, d.column_lanes), d.column_scale);
  Value base = byte_address(code_, memory, code_.mul(code_.add(code_.mul(row, pitch), first), 4));
  for (std::int64_t r = 0; r < d.registers;) {
    auto at = static_cast<std::size_t>(r);
    // Store neighbouring columns of one row together.
    const bool pair = r + 1 < d.registers && d.row_of_register[at] == d.row_of_register[at + 1] &&
                      d.column_of_register[at] + 1 == d.column_of_register[at + 1];
    values elements{sum_register(sums, r)};
    if (pair) elements.push_back(sum_register(sums, r + 1));
    Value address = byte_address(code_, base, (d.row_of_register[at] * pitch + d.column_of_register[at] + column) * 4);
    code_.make<mlir::LLVM::StoreOp>(code_.from_lanes(elements), address, pair ? 8u : 4u);
    r += pair ? 2 : 1;
  }
}

void matrix_product::write_transposed(std::span<const Value> sums, Value lane, Value memory, std::int64_t column,
                                      std::int64_t pitch) const {
  const result_map& d = unit_.d;
  const Value own_column = code_.mul(code_.div(lane, d.row_lanes), d.row_scale),
              own_row = code_.mul(code_.rem(lane, d.column_lanes), d.column_scale);
  const Value base = byte_address(code_, memory, code_.mul(code_.add(code_.mul(own_row, pitch), own_column), 4));
  for (std::int64_t r = 0; r < d.registers; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const std::int64_t place = d.column_of_register[at] * pitch + d.row_of_register[at] + column;
    code_.make<mlir::LLVM::StoreOp>(sum_register(sums, r), byte_address(code_, base, place * 4), 4u);
  }
}

void wave_barrier(code_builder& code, target_family family) {
  if (family == target_family::nvidia) {
    call_intrinsic(code, "llvm.nvvm.bar.warp.sync", {}, {code.integer(code.builder.getI32Type(), -1)});
    return;
  }
  // The hardware executes a wave's accesses to shared memory in order; the fence only stops the compiler from
  // reordering them.
  code.make<mlir::LLVM::FenceOp>(mlir::LLVM::AtomicOrdering::release, "wavefront");
  call_intrinsic(code, "llvm.amdgcn.wave.barrier", {});
  code.make<mlir::LLVM::FenceOp>(mlir::LLVM::AtomicOrdering::acquire, "wavefront");
}

}  // namespace kiln::gpu
