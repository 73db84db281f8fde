#include "mlir_bridge/codegen/int4.hpp"

#include <algorithm>

#include "ir/error.hpp"

namespace kiln::codegen {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t int4_of_word = 8;

Value bits_as(code_builder& code, Value v, mlir::Type type) {
  return v.getType() == type ? v : code.make<mlir::LLVM::BitcastOp>(type, v).getResult();
}

// Returns the bytes from which a value was loaded, if it was loaded with one load.
Value bytes_of(Value v) {
  auto cast = v.getDefiningOp<mlir::LLVM::BitcastOp>();
  return cast && code_builder::scalar_of(cast.getArg()).isInteger(8) ? cast.getArg() : Value();
}

Value shuffled(code_builder& code, Value a, Value b, llvm::ArrayRef<std::int64_t> picked) {
  return code.make<mlir::vector::ShuffleOp>(a, b, picked);
}

// Converts each element to 32 bits: shifts its word left until the element is in the top bits, then shifts right.
Value widened(code_builder& code, Value bytes, std::int64_t lanes, bool is_signed) {
  mlir::Type i32 = code.builder.getI32Type(), wide = code.with_lanes(i32, lanes);
  Value spread;
  if (lanes <= int4_of_word) {
    Value word = bits_as(code, bytes, code.builder.getIntegerType(static_cast<unsigned>(lanes * 4)));
    spread = code.splat(lanes == int4_of_word ? word : code.make<arith::ExtUIOp>(i32, word).getResult(), lanes);
  } else {
    Value words = bits_as(code, bytes, code.with_lanes(i32, lanes / int4_of_word));
    llvm::SmallVector<std::int64_t> picked;
    for (std::int64_t i = 0; i < lanes; ++i) picked.push_back(i / int4_of_word);
    spread = shuffled(code, words, words, picked);
  }
  llvm::SmallVector<std::int32_t> shifts;
  for (std::int64_t i = 0; i < lanes; ++i) shifts.push_back(static_cast<std::int32_t>(28 - i % int4_of_word * 4));
  Value up = code.make<arith::ConstantOp>(
      mlir::DenseElementsAttr::get(mlir::cast<mlir::VectorType>(wide), llvm::ArrayRef(shifts)));
  Value high = code.make<arith::ShLIOp>(spread, up), back = code.integer(wide, 28);
  return is_signed ? code.make<arith::ShRSIOp>(high, back).getResult()
                   : code.make<arith::ShRUIOp>(high, back).getResult();
}

// Converts pairs of elements to f16. An element in the lowest mantissa bits of 1024 adds its value; in the next four
// bits it adds 16 times its value ("Who Says Elephants Can't Run", Kim et al. 2022). A word {0, ..., 7} gives the pairs
// {0, 4}, {1, 5}, {2, 6}, {3, 7}. 8 is first added to signed elements by flipping their highest bit.
Value halves(code_builder& code, Value bytes, std::int64_t lanes, bool is_signed) {
  mlir::Type i32 = code.builder.getI32Type(), pair = mlir::VectorType::get({2}, code.builder.getF16Type());
  Value words = bits_as(code, bytes, code.with_lanes(i32, lanes / int4_of_word));
  const double raised = is_signed ? 8 : 0;
  Value sixteenth = code.number(pair, 1.0 / 16), from_low = code.number(pair, -1024 - raised),
        from_high = code.number(pair, -64 - raised);
  values all;
  for (std::int64_t w = 0; w < lanes / int4_of_word; ++w) {
    Value word = code.lane(words, w);
    if (is_signed) word = code.make<arith::XOrIOp>(word, code.integer(i32, static_cast<std::int32_t>(0x88888888u)));
    values pairs;
    for (int half = 0; half < 2; ++half) {
      Value part = half ? code.make<arith::ShRUIOp>(word, code.integer(i32, 8)).getResult() : word;
      auto pair_at = [&](std::int64_t mask) {
        Value kept = code.make<arith::AndIOp>(part, code.integer(i32, mask));
        return bits_as(code, code.make<arith::OrIOp>(kept, code.integer(i32, 0x64006400)), pair);
      };
      pairs.push_back(code.make<arith::AddFOp>(pair_at(0x000f000f), from_low));
      pairs.push_back(code.fma(pair_at(0x00f000f0), sixteenth, from_high));
    }
    Value low = shuffled(code, pairs[0], pairs[1], {0, 2, 1, 3}),
          high = shuffled(code, pairs[2], pairs[3], {0, 2, 1, 3});
    all.push_back(shuffled(code, low, high, {0, 1, 4, 5, 2, 3, 6, 7}));
  }
  for (; all.size() > 1; all.resize(all.size() / 2)) {
    llvm::SmallVector<std::int64_t> both;
    for (std::int64_t i = 0; i < 2 * code_builder::lanes_of(all[0]); ++i) both.push_back(i);
    for (std::size_t i = 0; i < all.size(); i += 2) all[i / 2] = shuffled(code, all[i], all[i + 1], both);
  }
  return all[0];
}

// GPUs compute with pairs of f16 at twice the rate of f32. They are recognized by the address space of their buffers.
bool has_pairs(const code_builder& code) { return code.on.global_space != 0; }

}  // namespace

void refuse_packed(const code_builder& code, element_type type) {
  throw error(error_kind::unsupported, std::string(code.on.name) + " kernels keep no intermediate tensors of type " +
                                           std::string(name(type)) + "; convert the tensor to " +
                                           (is_float(type) ? "f32" : "i8 or f32") + " in the model");
}

Value load_packed(code_builder& code, Value pointer, Value offset, element_type type, std::int64_t lanes,
                  std::int64_t multiple) {
  const int bits = storage_bits(type), per_byte = 8 / bits;
  mlir::Type i8 = code.builder.getI8Type(), element = code.builder.getIntegerType(static_cast<unsigned>(bits));
  if (lanes == 1) {
    Value byte = code.load(pointer, code.div(offset, per_byte), element_type::u8, 1), rest = code.rem(offset, per_byte);
    Value shift = code.make<arith::TruncIOp>(i8, code.mul(rest, bits));
    return code.make<arith::TruncIOp>(element, code.make<arith::ShRUIOp>(byte, shift).getResult());
  }
  if (bits == 4 && multiple % 2 == 0) {
    Value bytes = code.load(pointer, code.div(offset, 2), element_type::u8, lanes / 2, multiple / 2);
    return code.make<mlir::LLVM::BitcastOp>(code.with_lanes(element, lanes), bytes);
  }
  values each;
  for (std::int64_t i = 0; i < lanes; ++i) each.push_back(load_packed(code, pointer, code.add(offset, i), type, 1, 1));
  return code.from_lanes(each);
}

void store_packed(code_builder& code, Value codes, Value elements, element_type type, Value bytes, Value index) {
  const int bits = storage_bits(type), per_byte = 8 / bits;
  const mlir::Type i8 = code.builder.getI8Type();
  const Value first = code.mul(index, per_byte), last = code.sub(elements, 1);
  Value byte;
  for (int i = 0; i < per_byte; ++i) {
    const Value at = code.add(first, i);
    Value element = code.load(codes, code.min(at, last), element_type::u8, 1);
    if (i > 0) {
      element = code.select(code.less(at, elements), element, code.integer(i8, 0));
      element = code.make<arith::ShLIOp>(element, code.integer(i8, i * bits));
    }
    byte = byte ? code.make<arith::OrIOp>(byte, element).getResult() : element;
  }
  code.store(bytes, index, element_type::u8, byte, 1);
}

Value convert_packed(code_builder& code, Value v, element_type from, element_type to) {
  const std::int64_t lanes = code_builder::lanes_of(v);
  const bool is_signed = is_signed_integer(from);
  mlir::Type target = code.type(to, lanes);
  if (to == element_type::boolean)
    return code.make<arith::CmpIOp>(arith::CmpIPredicate::ne, v, code.integer(v.getType(), 0));
  Value bytes = bytes_of(v);
  if (bytes && is_float(to) && has_pairs(code) && lanes >= int4_of_word)
    return code.make<arith::ExtFOp>(target, halves(code, bytes, lanes, is_signed));
  mlir::Type wide = code.with_lanes(code.builder.getI32Type(), lanes);
  Value number;
  if (bytes) number = widened(code, bytes, lanes, is_signed);
  else
    number =
        is_signed ? code.make<arith::ExtSIOp>(wide, v).getResult() : code.make<arith::ExtUIOp>(wide, v).getResult();
  if (is_float(to)) return code.make<arith::SIToFPOp>(target, number);
  const int bits = storage_bits(to);
  if (bits < 32) return code.make<arith::TruncIOp>(target, number);
  return bits == 32 ? number : code.make<arith::ExtSIOp>(target, number).getResult();
}

}  // namespace kiln::codegen
