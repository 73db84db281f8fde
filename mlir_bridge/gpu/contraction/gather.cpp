#include "mlir_bridge/gpu/contraction/gather.hpp"

#include <algorithm>

#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

// If v is a widened f16 value, returns the f16 value. A product of two f16 is exact in f32 and is then rounded once, so
// multiplying directly in f16 gives the same result.
Value as_f16(code_builder& code, Value v) {
  auto is_f16 = [](Value x) { return code_builder::scalar_of(x).isF16(); };
  mlir::Operation* op = v.getDefiningOp();
  if (auto widened = mlir::dyn_cast_or_null<mlir::arith::ExtFOp>(op))
    return is_f16(widened.getIn()) ? widened.getIn() : Value();
  if (auto spread = mlir::dyn_cast_or_null<mlir::vector::BroadcastOp>(op)) {
    Value source = as_f16(code, spread.getSource());
    return source && code_builder::lanes_of(source) == 1 ? code.splat(source, code_builder::lanes_of(v)) : Value();
  }
  auto product = mlir::dyn_cast_or_null<mlir::arith::MulFOp>(op);
  if (!product) return {};
  Value a = as_f16(code, product.getLhs()), b = a ? as_f16(code, product.getRhs()) : Value();
  return b ? code.make<mlir::arith::MulFOp>(a, b).getResult() : Value();
}

// Converts a value of compute type to the type in which factors are stored.
Value as_factor(code_builder& code, Value v, element_type from, element_type factor) {
  if (factor == element_type::f16 && (from == factor || (is_float(from) && storage_bits(from) == 8)))
    if (Value narrow = as_f16(code, v)) return narrow;
  if (from != factor) v = convert_element(code, v, from, factor);
  return code.to_storage(v, factor);
}

// Returns true if elements of the type are stored as factors without a conversion.
bool has_bits_of(element_type factor, element_type type) {
  return type == factor || (factor == element_type::i8 && type == element_type::u8);
}

}  // namespace

Value gathered_chunk::masked(code_builder& code, Value also) const {
  values kept;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Value condition = both(code, inside[i], also), part = parts[i];
    if (condition) {
      // If parts consist of whole 32-bit words, select words.
      const mlir::Type type = part.getType();
      const std::int64_t bits = code_builder::lanes_of(part) * code_builder::scalar_of(part).getIntOrFloatBitWidth();
      const mlir::Type words = bits % 32 == 0 ? code_builder::with_lanes(code.builder.getI32Type(), bits / 32)
                                              : code.builder.getIntegerType(static_cast<unsigned>(bits));
      Value integer = reinterpret(code, part, words);
      part = reinterpret(code, code.select(condition, integer, code.integer(words, 0)), type);
    }
    kept.push_back(part);
  }
  return reinterpret(code, joined(code, kept), chunk_type(code));
}

gathered_chunk gather_chunk(kernel_emitter& e, evaluator& ev, const operand& from, element_type factor,
                            element_request request) {
  gathered_chunk result;
  const std::int64_t chunk = elements_of_chunk(factor), piece = std::min(from.piece, chunk);
  for (std::int64_t first = 0; first < chunk; first += piece) {
    values elements;
    Value inside;
    const std::int64_t lanes = from.along_rows ? 1 : piece;
    for (std::int64_t i = 0; i < piece; i += lanes) {
      request.offset = first + i;
      request.lanes = lanes;
      found_elements found = from.find(ev, request);
      elements.push_back(as_factor(e.code, found.elements, from.type, factor));
      if (i == 0) inside = found.inside;
    }
    result.parts.push_back(joined(e.code, elements));
    result.inside.push_back(inside);
  }
  return result;
}

std::vector<gathered_chunk> gather_chunks(kernel_emitter& e, evaluator& ev, const operand& from, element_type factor,
                                          element_request request, std::int64_t count) {
  if (count == 1) return {gather_chunk(e, ev, from, factor, request)};
  const std::int64_t chunk = elements_of_chunk(factor);
  request.offset = 0;
  request.lanes = count * chunk;
  found_elements found = from.find(ev, request);
  Value all = as_factor(e.code, found.elements, from.type, factor);
  std::vector<gathered_chunk> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back({{part_of(e.code, all, i * chunk, chunk)}, {found.inside}});
  return result;
}

std::optional<chunk_place> place_of_chunk(kernel_emitter& e, evaluator& ev, const operand& from, element_type factor,
                                          element_request request) {
  if (from.along_rows || !has_bits_of(factor, from.type) || from.piece != elements_of_chunk(factor))
    return std::nullopt;
  request.offset = 0;
  request.lanes = from.piece;
  found_elements found = from.find(ev, request);
  // The generated code is a plain load. Take its address; the load itself has no use and is removed.
  mlir::Operation* op = found.elements.getDefiningOp();
  if (auto widened = mlir::dyn_cast_or_null<mlir::arith::ExtFOp>(op)) op = widened.getIn().getDefiningOp();
  auto load = mlir::dyn_cast_or_null<mlir::LLVM::LoadOp>(op);
  if (!load || load.getAlignment().value_or(1) < static_cast<std::uint64_t>(chunk_bytes)) return std::nullopt;
  if (load.getType() != code_builder::with_lanes(e.code.storage_type(factor), from.piece)) return std::nullopt;
  if (load->getBlock() != e.code.builder.getInsertionBlock()) return std::nullopt;
  return chunk_place{load.getAddr(), found.inside};
}

bool is_plain(kernel_emitter& e, const operand& from, element_type factor) {
  if (from.along_rows || !has_bits_of(factor, from.type) || from.piece != elements_of_chunk(factor)) return false;
  return e.try_out([&] {
    evaluator ev(e);
    Value some = e.code.mul(e.begin(), elements_of_chunk(factor));
    element_request request{.batch = some,
                            .row = some,
                            .k_tile = e.code.constant(0),
                            .k_inner = some,
                            .k_step = elements_of_chunk(factor),
                            .beyond = true};
    return place_of_chunk(e, ev, from, factor, request).has_value();
  });
}

}  // namespace kiln::gpu
