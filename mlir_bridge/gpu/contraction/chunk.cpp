#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

Value bit_and(code_builder& code, Value a, std::int64_t mask) {
  return code.make<mlir::arith::AndIOp>(a, code.integer(a.getType(), mask));
}
Value bit_xor(code_builder& code, Value a, Value b) { return code.make<mlir::arith::XOrIOp>(a, b); }

Value both(code_builder& code, Value a, Value b) {
  if (!a || !b) return a ? a : b;
  return code.make<mlir::arith::AndIOp>(a, b);
}

Value swizzle(code_builder& code, Value row, std::int64_t chunks_of_row) {
  if (chunks_of_row == 1) return code.constant(0);
  if (chunks_of_row == 2) return code.rem(code.div(row, 4), 2);
  if (chunks_of_row == 4) return code.rem(code.div(row, 2), 4);
  // Reverses the three lowest bits of the row. Rows 2i and 2i + 1 then differ in the highest bit, so that their first
  // four chunks are in different halves of the banks.
  Value low = code.mul(code.rem(row, 2), 4), middle = bit_and(code, row, 2), high = code.rem(code.div(row, 4), 2);
  return code.add(code.add(low, middle), high);
}

Value byte_address(code_builder& code, Value pointer, Value bytes) {
  if (code_builder::known(bytes) == std::int64_t{0}) return pointer;
  return code.make<mlir::LLVM::GEPOp>(pointer.getType(), code.builder.getI8Type(), pointer,
                                      llvm::ArrayRef<mlir::LLVM::GEPArg>{mlir::LLVM::GEPArg(bytes)},
                                      mlir::LLVM::GEPNoWrapFlags::inbounds);
}

Value byte_address(code_builder& code, Value pointer, std::int64_t bytes) {
  if (bytes == 0) return pointer;
  return code.make<mlir::LLVM::GEPOp>(pointer.getType(), code.builder.getI8Type(), pointer,
                                      llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<std::int32_t>(bytes)},
                                      mlir::LLVM::GEPNoWrapFlags::inbounds);
}

mlir::Type chunk_type(code_builder& code) { return mlir::VectorType::get({4}, code.builder.getI32Type()); }
Value load_chunk(code_builder& code, Value address) {
  return code.make<mlir::LLVM::LoadOp>(chunk_type(code), address, 16u);
}
void store_chunk(code_builder& code, Value address, Value chunk) {
  code.make<mlir::LLVM::StoreOp>(chunk, address, 16u);
}

Value shifted(code_builder& code, Value chunk) {
  return bit_xor(code, chunk, code.integer(chunk.getType(), all_minus_128));
}

Value reinterpret(code_builder& code, Value v, mlir::Type type) {
  if (v.getType() == type) return v;
  return code.make<mlir::LLVM::BitcastOp>(type, v);
}

Value unknown(code_builder& code, target_family family, Value index) {
  const char* constraint = family == target_family::amdgpu ? "=s,0" : code.on.index_bits == 32 ? "=r,0" : "=l,0";
  return code
      .make<mlir::LLVM::InlineAsmOp>(index.getType(), mlir::ValueRange(index), "", constraint,
                                     /*has_side_effects=*/false, /*is_align_stack=*/false,
                                     mlir::LLVM::tailcallkind::TailCallKind::None, mlir::LLVM::AsmDialectAttr(),
                                     mlir::ArrayAttr())
      .getResult(0);
}

Value part_of(code_builder& code, Value vector, std::int64_t first, std::int64_t count) {
  const std::int64_t lanes = code_builder::lanes_of(vector);
  if (count == lanes) return vector;
  if (count == 1) return code.lane(vector, first);
  llvm::SmallVector<std::int64_t> picked;
  for (std::int64_t i = 0; i < count; ++i) picked.push_back(first + i);
  return code.make<mlir::vector::ShuffleOp>(vector, vector, picked);
}

Value joined(code_builder& code, std::span<const Value> parts) {
  if (parts.size() == 1) return parts[0];
  const std::int64_t lanes = code_builder::lanes_of(parts[0]);
  if (lanes == 1) return code.from_lanes(parts);
  values halves;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    llvm::SmallVector<std::int64_t> all;
    for (std::int64_t lane = 0; lane < 2 * lanes; ++lane) all.push_back(lane);
    halves.push_back(code.make<mlir::vector::ShuffleOp>(parts[i], parts[i + 1], all));
  }
  return joined(code, halves);
}

}  // namespace kiln::gpu
