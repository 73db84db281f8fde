#include "mlir_bridge/cpu/contraction/lane_product.hpp"

#include <fmt/format.h>

#include <string>

namespace kiln::cpu {

namespace {

constexpr std::int64_t bf16_of_lane = 2;

enum class method { bf16, vnni, arm, pairs, unpacked };

method method_of(const lane_products& p, std::int64_t lanes) {
  if (p.neighbours == bf16_of_lane) return lanes < 4 ? method::unpacked : method::bf16;
  if (!p.arm.empty() && lanes == 4) return method::arm;
  if (!p.x86 || lanes < 4) return method::unpacked;
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

// Returns the lanes as pairs of bf16.
Value with_bf16(code_builder& code, Value v) {
  const auto pairs = code_builder::lanes_of(v) * bf16_of_lane;
  return code.make<mlir::vector::BitCastOp>(mlir::VectorType::get({pairs}, code.builder.getBF16Type()), v);
}

// Returns the lower or the higher bf16 of each lane as an f32.
Value bf16_of(code_builder& code, Value lanes, bool higher) {
  const mlir::Type floats = code.type(element_type::f32, code_builder::lanes_of(lanes));
  Value bits = higher
                   ? Value(code.make<mlir::arith::AndIOp>(lanes, code.integer(lanes.getType(), ~std::int64_t{0xffff})))
                   : shift_left(code, lanes, 16);
  return code.make<mlir::arith::BitcastOp>(floats, bits);
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

std::optional<lane_products> find_lane_products(const target_row& target, element_type left, element_type right) {
  auto is_byte = [](element_type t) { return t == element_type::i8 || t == element_type::u8; };
  auto has = [&](const char* feature) { return ("," + target.features + ",").find(feature) != std::string::npos; };
  if (left == element_type::bf16 && right == element_type::bf16 && has(",+avx512bf16,")) {
    const bool matrix = has(",+amx-bf16,");
    return lane_products{.neighbours = bf16_of_lane,
                         .x86 = true,
                         .matrix = matrix ? "tdpbf16ps" : std::string_view(),
                         .vectors = !matrix};
  }
  if (!is_byte(left) || !is_byte(right)) return std::nullopt;
  lane_products p{.left_signed = left == element_type::i8, .right_signed = right == element_type::i8};
  p.x86 = target.triple.starts_with("x86_64");
  p.vnni = p.x86 && !p.left_signed && p.right_signed &&
           (has(",+avx512vnni,") || (target.vector_bits <= 256 && has(",+avxvnni,")));
  if (has(",+amx-int8,")) {
    if (p.left_signed) p.matrix = p.right_signed ? "tdpbssd" : "tdpbsud";
    else p.matrix = p.right_signed ? "tdpbusd" : "tdpbuud";
  }
  if (target.triple.starts_with("aarch64")) {
    if (p.left_signed == p.right_signed && has(",+dotprod,")) p.arm = p.left_signed ? "sdot" : "udot";
    else if (!p.left_signed && p.right_signed && has(",+i8mm,")) p.arm = "usdot";
  }
  return p;
}

std::int64_t neighbours_of(const std::optional<lane_products>& products) { return products ? products->neighbours : 1; }

std::int64_t steps_of(const std::optional<lane_products>& products, std::int64_t depth) {
  return (depth + neighbours_of(products) - 1) / neighbours_of(products);
}

std::int64_t registers_of_factor(const std::optional<lane_products>& products) {
  return products && products->neighbours == bytes_of_lane && !products->vnni && products->arm.empty() ? 2 : 1;
}

lane_factor split_lanes(code_builder& code, const lane_products& products, Value lanes, bool is_left) {
  switch (method_of(products, code_builder::lanes_of(lanes))) {
    case method::bf16: return {with_bf16(code, lanes), {}};
    case method::vnni:
    case method::arm: return {with_element(code, lanes, 8), {}};
    case method::unpacked: return {lanes, {}};
    case method::pairs: break;
  }
  const bool is_signed = is_left ? products.left_signed : products.right_signed;
  Value pairs = with_element(code, lanes, 16);
  return {shift_right(code, shift_left(code, pairs, 8), 8, is_signed), shift_right(code, pairs, 8, is_signed)};
}

Value add_lane_products(code_builder& code, const lane_products& products, const lane_factor& left,
                        const lane_factor& right, Value sum) {
  const std::int64_t lanes = code_builder::lanes_of(sum);
  switch (method_of(products, lanes)) {
    case method::bf16:
      return call(code, fmt::format("llvm.x86.avx512bf16.dpbf16ps.{}", lanes * 32), sum.getType(),
                  {sum, left.first, right.first});
    case method::vnni:
      return call(code, fmt::format("llvm.x86.avx512.vpdpbusd.{}", lanes * 32), sum.getType(),
                  {sum, left.first, right.first});
    case method::arm:
      return call(code, fmt::format("llvm.aarch64.neon.{}", products.arm), sum.getType(),
                  {sum, left.first, right.first});
    case method::pairs:
      return add_pairs(code, left.second, right.second, add_pairs(code, left.first, right.first, sum));
    case method::unpacked: break;
  }
  if (products.neighbours == bf16_of_lane) {
    for (bool higher : {true, false})
      sum = code.fma(bf16_of(code, left.first, higher), bf16_of(code, right.first, higher), sum);
    return sum;
  }
  for (std::int64_t i = 0; i < bytes_of_lane; ++i)
    sum = code.add(code.mul(byte_of(code, left.first, i, products.left_signed),
                            byte_of(code, right.first, i, products.right_signed)),
                   sum);
  return sum;
}

element_type bits_type(element_type type) { return type == element_type::bf16 ? element_type::i16 : type; }

Value load_lanes(code_builder& code, Value pointer, element_type type, std::int64_t lanes) {
  const element_type bits = bits_type(type);
  Value elements = code.load(pointer, code.constant(0), bits, lanes * 32 / storage_bits(bits));
  const mlir::Type i32 = code.type(element_type::i32, lanes);
  if (lanes == 1) return code.make<mlir::LLVM::BitcastOp>(i32, elements);
  return code.make<mlir::vector::BitCastOp>(i32, elements);
}

Value bits_of(code_builder& code, Value computed, element_type type) {
  return code.make<mlir::arith::ExtUIOp>(code.type(element_type::i32, code_builder::lanes_of(computed)),
                                         code.to_storage(computed, type));
}

}  // namespace kiln::cpu
