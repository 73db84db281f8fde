#include "mlir_bridge/cpu/contraction/byte_product.hpp"

#include <fmt/format.h>

#include <string>

namespace kiln::cpu {

namespace {

enum class method { vnni, arm, pairs, bytes };

method method_of(const byte_products& p, std::int64_t lanes) {
  if (!p.arm.empty() && lanes == 4) return method::arm;
  if (!p.x86 || lanes < 4) return method::bytes;
  return p.vnni ? method::vnni : method::pairs;
}

Value with_element(code_builder& code, Value v, unsigned bits) {
  const auto lanes = code_builder::lanes_of(v);
  return code.make<mlir::vector::BitCastOp>(
      mlir::VectorType::get({lanes * 32 / bits}, code.builder.getIntegerType(bits)), v);
}

Value call(code_builder& code, const std::string& name, mlir::Type type, mlir::ValueRange operands) {
  return code.make<mlir::LLVM::CallIntrinsicOp>(type, code.builder.getStringAttr(name), operands).getResult(0);
}

Value shift_left(code_builder& code, Value v, std::int64_t bits) {
  return bits ? Value(code.make<mlir::arith::ShLIOp>(v, code.integer(v.getType(), bits))) : v;
}

Value shift_right(code_builder& code, Value v, std::int64_t bits, bool is_signed) {
  Value count = code.integer(v.getType(), bits);
  if (is_signed) return code.make<mlir::arith::ShRSIOp>(v, count);
  return code.make<mlir::arith::ShRUIOp>(v, count);
}

// Returns byte i of each lane as an i32.
Value byte_of(code_builder& code, Value lanes, std::int64_t i, bool is_signed) {
  return shift_right(code, shift_left(code, lanes, 24 - 8 * i), 24, is_signed);
}

Value add_pairs(code_builder& code, Value left, Value right, Value sum) {
  const std::int64_t lanes = code_builder::lanes_of(sum);
  const std::string name = lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                           : lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                        : "llvm.x86.sse2.pmadd.wd";
  return code.add(call(code, name, sum.getType(), {left, right}), sum);
}

}  // namespace

std::optional<byte_products> find_byte_products(const target_row& target, element_type left, element_type right) {
  auto is_byte = [](element_type t) { return t == element_type::i8 || t == element_type::u8; };
  if (!is_byte(left) || !is_byte(right)) return std::nullopt;
  byte_products p{.left_signed = left == element_type::i8, .right_signed = right == element_type::i8};
  auto has = [&](const char* feature) { return ("," + target.features + ",").find(feature) != std::string::npos; };
  p.x86 = target.triple.starts_with("x86_64");
  p.vnni = p.x86 && !p.left_signed && p.right_signed &&
           (has(",+avx512vnni,") || (target.vector_bits <= 256 && has(",+avxvnni,")));
  if (target.triple.starts_with("aarch64")) {
    if (p.left_signed == p.right_signed && has(",+dotprod,")) p.arm = p.left_signed ? "sdot" : "udot";
    else if (!p.left_signed && p.right_signed && has(",+i8mm,")) p.arm = "usdot";
  }
  return p;
}

std::int64_t registers_of_factor(const std::optional<byte_products>& products) {
  return products && !products->vnni && products->arm.empty() ? 2 : 1;
}

byte_factor split_bytes(code_builder& code, const byte_products& products, Value lanes, bool is_left) {
  switch (method_of(products, code_builder::lanes_of(lanes))) {
    case method::vnni:
    case method::arm: return {with_element(code, lanes, 8), {}};
    case method::bytes: return {lanes, {}};
    case method::pairs: break;
  }
  const bool is_signed = is_left ? products.left_signed : products.right_signed;
  Value pairs = with_element(code, lanes, 16);
  return {shift_right(code, shift_left(code, pairs, 8), 8, is_signed), shift_right(code, pairs, 8, is_signed)};
}

Value add_byte_products(code_builder& code, const byte_products& products, const byte_factor& left,
                        const byte_factor& right, Value sum) {
  const std::int64_t lanes = code_builder::lanes_of(sum);
  switch (method_of(products, lanes)) {
    case method::vnni:
      return call(code, fmt::format("llvm.x86.avx512.vpdpbusd.{}", lanes * 32), sum.getType(),
                  {sum, left.first, right.first});
    case method::arm:
      return call(code, fmt::format("llvm.aarch64.neon.{}", products.arm), sum.getType(),
                  {sum, left.first, right.first});
    case method::pairs:
      return add_pairs(code, left.second, right.second, add_pairs(code, left.first, right.first, sum));
    case method::bytes: break;
  }
  for (std::int64_t i = 0; i < bytes_of_lane; ++i)
    sum = code.add(code.mul(byte_of(code, left.first, i, products.left_signed),
                            byte_of(code, right.first, i, products.right_signed)),
                   sum);
  return sum;
}

Value load_lane(code_builder& code, Value pointer, element_type type) {
  Value bytes = code.load(pointer, code.constant(0), type, bytes_of_lane);
  return code.make<mlir::LLVM::BitcastOp>(code.builder.getI32Type(), bytes);
}

}  // namespace kiln::cpu
