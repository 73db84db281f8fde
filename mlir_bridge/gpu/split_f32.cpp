#include "mlir_bridge/gpu/split_f32.hpp"

namespace kiln::gpu {

std::array<Value, f32_parts> split_f32(code_builder& code, Value numbers) {
  namespace arith = mlir::arith;
  const std::int64_t lanes = code_builder::lanes_of(numbers);
  const mlir::Type f32 = numbers.getType(), i32 = code_builder::with_lanes(code.builder.getI32Type(), lanes),
                   i16 = code_builder::with_lanes(code.builder.getIntegerType(16), lanes);
  const auto as_integers = [&](Value bf16) -> Value { return code.make<arith::BitcastOp>(i16, bf16); };
  // The first part is cut off, not rounded: the largest numbers would become infinite.
  Value bits = code.make<arith::BitcastOp>(i32, numbers), high = code.make<arith::ShRUIOp>(bits, code.integer(i32, 16)),
        kept = code.make<arith::AndIOp>(bits, code.integer(i32, -65536));
  Value rest = code.make<arith::SubFOp>(numbers, code.make<arith::BitcastOp>(f32, kept).getResult());
  Value size = code.make<arith::AndIOp>(bits, code.integer(i32, 0x7fffffff));
  rest = code.select(code.equal(size, code.integer(i32, 0x7f800000)), code.number(f32, 0), rest);
  Value middle = code.to_storage(rest, element_type::bf16);
  Value last = code.make<arith::SubFOp>(rest, code.to_compute(middle, element_type::bf16));
  return {code.make<arith::TruncIOp>(i16, high), as_integers(middle),
          as_integers(code.to_storage(last, element_type::bf16))};
}

}  // namespace kiln::gpu
