#include "mlir_bridge/gpu/contraction/packed_weights.hpp"

#include <algorithm>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t codes_of_load = 32, words_of_load = 4;

bool is_code(element_type type) { return type == element_type::i4 || type == element_type::u4; }

// (word & mask) ^ bits. As inline assembly, because LLVM has no such operation, and ptxas makes two instructions of two
// constants.
Value masked(code_builder& code, Value word, std::uint32_t mask, std::uint32_t bits) {
  const mlir::Type i32 = code.builder.getI32Type();
  const auto constant = [&](std::uint32_t n) { return code.integer(i32, static_cast<std::int32_t>(n)); };
  auto dialect = mlir::LLVM::AsmDialectAttr::get(code.builder.getContext(), mlir::LLVM::AsmDialect::AD_ATT);
  return code
      .make<mlir::LLVM::InlineAsmOp>(i32, mlir::ValueRange{word, constant(mask), constant(bits)},
                                     "lop3.b32 $0, $1, $2, $3, 0x6a;", "=r,r,r,r", /*has_side_effects=*/false,
                                     /*is_align_stack=*/false, mlir::LLVM::tailcallkind::TailCallKind::None, dialect,
                                     mlir::ArrayAttr())
      .getResult(0);
}

}  // namespace

std::optional<packed_weights> find_packed_weights(const kernel_emitter& e, value b) {
  value v = b;
  while (v.producer->op().is<reshape>()) v = v.producer->inputs()[0];
  const auto* op = v.producer->op().get_if<elementwise>();
  if (!op || op->function != scalar_function::mul || b.type().rank() != 2 || !b.type().is_static() ||
      v.type().type != element_type::f16)
    return std::nullopt;
  for (std::size_t side : {0u, 1u}) {
    const value converted = v.producer->inputs()[side], spread = v.producer->inputs()[1 - side];
    if (!converted.producer->op().is<convert>() || !spread.producer->op().is<broadcast>()) continue;
    const value codes = converted.producer->inputs()[0], scales = spread.producer->inputs()[0];
    std::vector<dim> one = codes.type().dims;
    if (one.size() < 2 || one.size() > 3 || one[0] != b.type().dims[0]) continue;
    const std::int64_t group = one.back().value();
    one.back() = 1;
    if (is_code(codes.type().type) && scales.type().type == element_type::f16 && scales.type().dims == one &&
        e.in_memory(codes) && e.in_memory(scales))
      return packed_weights{codes, scales, one[0].value(), b.type().dims[1].value(), group};
  }
  return std::nullopt;
}

loaded_codes load_codes(kernel_emitter& e, evaluator& ev, const packed_weights& w, Value row, Value k) {
  code_builder& code = e.code;
  const bool grouped = w.codes.type().rank() == 3;
  position at{{code.min(row, w.rows - 1), 0, {}, 0, w.rows, 1}};
  if (grouped) at.push_back({code.div(k, w.group), 0, {}, 0, w.depth / w.group, 1});
  position of_scale = at;
  at.push_back({grouped ? code.rem(k, w.group) : k, 1, {}, 0, w.group, codes_of_load});
  of_scale.push_back({code.constant(0), 0, {}, 0, 1, any_multiple});
  const Value codes = ev.at(w.codes, at, codes_of_load);
  const mlir::Type words = mlir::VectorType::get({words_of_load}, code.builder.getI32Type());
  return {code.make<mlir::LLVM::BitcastOp>(words, codes).getResult(),
          convert_element(code, ev.at(w.scales, of_scale, 1), element_type::f16, element_type::f32)};
}

// An element in the lowest mantissa bits of 1024 adds its value; in the next four bits it adds 16 times its value (Kim
// et al. 2022, "Who Says Elephants Can't Run"). The highest bits of signed elements are flipped, which adds 8.
Value chunk_of_codes(code_builder& code, Value word, bool is_signed) {
  const mlir::Type pair = mlir::VectorType::get({2}, code.builder.getF16Type());
  const double raised = is_signed ? 8 : 0;
  const Value sixteenth = code.number(pair, 1.0 / 16), from_low = code.number(pair, -1024 - raised),
              from_high = code.number(pair, -64 - raised);
  values words;
  for (int half = 0; half < 2; ++half) {
    const Value part = half ? code.make<arith::ShRUIOp>(word, code.integer(word.getType(), 8)).getResult() : word;
    const auto pair_at = [&](std::uint32_t mask, std::uint32_t sign) -> Value {
      return code.make<mlir::LLVM::BitcastOp>(pair, masked(code, part, mask, 0x64006400u ^ (is_signed ? sign : 0)));
    };
    const Value low = code.make<arith::AddFOp>(pair_at(0x000f000fu, 0x00080008u), from_low),
                high = code.fma(pair_at(0x00f000f0u, 0x00800080u), sixteenth, from_high);
    for (Value numbers : {low, high})
      words.push_back(code.make<mlir::LLVM::BitcastOp>(code.builder.getI32Type(), numbers).getResult());
  }
  return code.from_lanes(words);
}

Value in_pairs(code_builder& code, Value chunk) {
  const mlir::Type i32 = code.builder.getI32Type();
  values words;
  for (std::int64_t first : {0, 1})
    // The low halves of two words, and the high ones.
    for (std::int32_t picked : {0x5410, 0x7632})
      words.push_back(
          call_intrinsic(code, "llvm.nvvm.prmt", i32,
                         {code.lane(chunk, first), code.lane(chunk, first + 2), code.integer(i32, picked)}));
  return code.from_lanes(words);
}

}  // namespace kiln::gpu
