#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"

#include <fmt/format.h>

#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

namespace llvm_dialect = mlir::LLVM;

values hopper_code::assembly(const std::string& text, const std::string& constraints, std::span<const Value> operands,
                             std::vector<mlir::Type> results) {
  mlir::Type type;
  if (results.size() == 1) type = results[0];
  else if (!results.empty()) type = llvm_dialect::LLVMStructType::getLiteral(code_.builder.getContext(), results);
  auto dialect = llvm_dialect::AsmDialectAttr::get(code_.builder.getContext(), llvm_dialect::AsmDialect::AD_ATT);
  auto op = code_.make<llvm_dialect::InlineAsmOp>(
      type, mlir::ValueRange(llvm::ArrayRef<Value>(operands.data(), operands.size())), llvm::StringRef(text),
      llvm::StringRef(constraints),
      /*has_side_effects=*/true, /*is_align_stack=*/false, llvm_dialect::tailcallkind::TailCallKind::None, dialect,
      mlir::ArrayAttr());
  if (results.empty()) return {};
  if (results.size() == 1) return {op.getResult(0)};
  values parts;
  for (std::size_t i = 0; i < results.size(); ++i)
    parts.push_back(code_.make<llvm_dialect::ExtractValueOp>(
        op.getResult(0), llvm::ArrayRef<std::int64_t>{static_cast<std::int64_t>(i)}));
  return parts;
}

Value hopper_code::narrow(Value index) {
  mlir::Type i32 = code_.builder.getI32Type();
  return index.getType() == i32 ? index : code_.make<mlir::arith::TruncIOp>(i32, index).getResult();
}

Value hopper_code::shared_address(Value pointer) {
  return code_.make<llvm_dialect::PtrToIntOp>(code_.builder.getI32Type(), pointer);
}

Value hopper_code::quotient(Value x, Value first, std::int64_t a, std::int64_t b) {
  const mlir::Type i64 = code_.builder.getI64Type();
  constexpr std::int64_t one = std::int64_t{1} << 32;
  const auto inverse = [&](std::int64_t n) { return code_.integer(i64, (one + n - 1) / n); };
  Value factor = code_.select(first, inverse(a), inverse(b)),
        product = code_.make<mlir::arith::MulIOp>(code_.make<mlir::arith::ExtUIOp>(i64, x), factor);
  return code_.make<mlir::arith::TruncIOp>(code_.builder.getI32Type(),
                                           code_.make<mlir::arith::ShRUIOp>(product, code_.integer(i64, 32)));
}

// --- warps, registers, clusters

Value hopper_code::uniform(Value v) {
  return call_intrinsic(code_, "llvm.nvvm.shfl.sync.idx.i32", code_.builder.getI32Type(),
                        {number(-1), v, number(0), number(31)});
}

void hopper_code::synchronize_warp() { call_intrinsic(code_, "llvm.nvvm.bar.warp.sync", {}, {number(-1)}); }

Value hopper_code::any_of_warp(Value condition) {
  return call_intrinsic(code_, "llvm.nvvm.vote.any.sync", code_.builder.getI1Type(), {number(-1), condition});
}

Value hopper_code::exchange(Value v, std::int64_t mask) {
  mlir::Type i32 = code_.builder.getI32Type();
  const Value bits = code_.make<mlir::arith::BitcastOp>(i32, v);
  return code_.make<mlir::arith::BitcastOp>(v.getType(), call_intrinsic(code_, "llvm.nvvm.shfl.sync.bfly.i32", i32,
                                                                        {number(-1), bits, number(mask), number(31)}));
}

void hopper_code::set_register_limit(std::int64_t registers, bool increase) {
  assembly(fmt::format("setmaxnreg.{}.sync.aligned.u32 {};", increase ? "inc" : "dec", registers), "~{memory}", {});
}

void hopper_code::synchronize_cluster() {
  assembly("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;", "~{memory}", {});
}

void hopper_code::arrive_at_cluster() { assembly("barrier.cluster.arrive.release;", "~{memory}", {}); }

void hopper_code::wait_for_cluster() { assembly("barrier.cluster.wait.acquire;", "~{memory}", {}); }

void hopper_code::synchronize_threads(std::int64_t barrier, std::int64_t threads) {
  assembly(fmt::format("bar.sync {}, {};", barrier, threads), "~{memory}", {});
}

void hopper_code::synchronize_threads(Value barrier, std::int64_t threads) {
  assembly(fmt::format("bar.sync $0, {};", threads), "r,~{memory}", {barrier});
}

void hopper_code::arrive_threads(Value barrier, std::int64_t threads) {
  assembly(fmt::format("bar.arrive $0, {};", threads), "r,~{memory}", {barrier});
}

Value hopper_code::load_word_of(Value rank, Value address) {
  return assembly(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, $1, $2;\nld.shared::cluster.b32 $0, [remote];\n}",
      "=r,r,r,~{memory}", {address, rank}, {code_.builder.getI32Type()})[0];
}

void hopper_code::store_word_of(Value rank, Value address, Value word) {
  assembly("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, $0, $1;\nst.shared::cluster.f32 [remote], $2;\n}",
           "r,r,f,~{memory}", {address, rank, word});
}

// --- barriers

void hopper_code::initialize_barrier(Value barrier, std::int64_t count) {
  assembly(fmt::format("mbarrier.init.shared::cta.b64 [$0], {};", count), "r,~{memory}", {barrier});
}

void hopper_code::initialize_barrier(Value barrier, Value count) {
  assembly("mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}", {barrier, count});
}

void hopper_code::publish_barriers() {
  assembly("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;", "~{memory}", {});
}

void hopper_code::wait(Value barrier, Value parity) {
  const char* plain =
      "{\n.reg .pred done;\n"
      "again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n"
      "@done bra ready;\nbra again;\nready:\n}";
  const char* bounded =
      "{\n.reg .pred done;\n.reg .b64 begin, now;\nmov.u64 begin, %clock64;\n"
      "again:\nmbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n@done bra ready;\n"
      "mov.u64 now, %clock64;\nsub.s64 now, now, begin;\nsetp.gt.s64 done, now, 268435456;\n@done trap;\nbra "
      "again;\nready:\n}";
  assembly(bounded_ ? bounded : plain, "r,r,~{memory}", {barrier, parity});
}

void hopper_code::arrive(Value barrier) {
  assembly("mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", {barrier});
}

void hopper_code::arrive_at(Value barrier, Value rank) {
  // A release at the scope of the workgroup (the default) is enough, because the copying thread does not have to see
  // any earlier writes. A release for the whole cluster would cost more than the products of a block.
  assembly(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, $0, $1;\nmbarrier.arrive.shared::cluster.b64 _, "
      "[remote];\n}",
      "r,r,~{memory}", {barrier, rank});
}

void hopper_code::arrive_expecting(Value barrier, std::int64_t bytes) {
  assembly(fmt::format("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {};", bytes), "r,~{memory}", {barrier});
}

void hopper_code::arrive_expecting(Value barrier, Value bytes) {
  assembly("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}", {barrier, bytes});
}

// --- tensor copy engine

void hopper_code::prefetch_map(Value map) { assembly("prefetch.tensormap [$0];", "l,~{memory}", {map}); }

void hopper_code::copy_box(Value to, Value map, std::span<const Value> coordinates, Value barrier,
                           std::optional<std::int64_t> mask, Value mask_shift) {
  std::string where, constraints = "r,l,r";
  values operands{to, map, barrier};
  for (Value c : coordinates) {
    where += fmt::format("{}${}", where.empty() ? "" : ", ", operands.size());
    operands.push_back(c);
    constraints += ",r";
  }
  std::string text = fmt::format(
      "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes{} [$0], [$1, {{{}}}], [$2]",
      coordinates.size(), mask ? ".multicast::cluster" : "", where);
  if (mask) {
    Value bits = number(*mask);
    if (mask_shift) bits = code_.make<mlir::arith::ShLIOp>(bits, mask_shift);
    text += fmt::format(", ${}", operands.size());
    operands.push_back(code_.make<mlir::arith::TruncIOp>(code_.builder.getIntegerType(16), bits));
    constraints += ",h";
  }
  assembly(text + ";", constraints + ",~{memory}", operands);
}

// --- warpgroup matrix instructions

namespace {

// Layout: rows of 128 bytes with the copy engine's 128-byte swizzle; a pattern is eight rows (1024 bytes). If k is
// inner, groups of 8 rows are `stride` apart. If rows are inner, `stride` is the distance between groups of 8 k, and
// `leading` the distance between groups of 64 rows.
constexpr std::int64_t pattern_bytes = 1024, block_bytes = 8192;

std::string_view type_name(element_type type) {
  switch (type) {
    case element_type::f16: return "f16";
    case element_type::bf16: return "bf16";
    case element_type::f8e4m3: return "e4m3";
    case element_type::f8e5m2: return "e5m2";
    case element_type::u8: return "u8";
    default: return "s8";
  }
}

bool is_integer(const wgmma_shape& s) { return s.a == element_type::i8 || s.a == element_type::u8; }

}  // namespace

mlir::Type hopper_code::sum_type(const wgmma_shape& s) {
  return is_integer(s) ? mlir::Type(code_.builder.getI32Type()) : mlir::Type(code_.builder.getF32Type());
}

values hopper_code::undefined_sums(const wgmma_shape& s) {
  Value nothing = code_.make<llvm_dialect::UndefOp>(sum_type(s));
  return values(static_cast<std::size_t>(count_sums(s)), nothing);
}

Value hopper_code::descriptor(Value address, bool k_inner) {
  // Descriptors count in units of 16 bytes.
  constexpr std::int64_t unit = 16;
  std::int64_t leading = k_inner ? unit : block_bytes;
  std::int64_t fixed = ((leading / unit) << 16) | ((pattern_bytes / unit) << 32) | (std::int64_t{1} << 62);
  mlir::Type i64 = code_.builder.getI64Type();
  // Addresses in a cluster contain the workgroup's rank above the 18 bits that descriptors need.
  Value offset = code_.make<mlir::arith::AndIOp>(address, number(0x3ffff));
  Value start = code_.make<mlir::arith::ExtUIOp>(i64, code_.div(offset, unit));
  return code_.make<mlir::arith::OrIOp>(start, code_.integer(i64, fixed));
}

values hopper_code::multiply_block(const wgmma_shape& s, Value a_address, Value b_address, Value accumulate,
                                   const values& sums) {
  const bool integers = is_integer(s);
  const std::int64_t count = count_sums(s), of_block = s.columns / 2;
  const bool bytes = storage_bits(s.a) == 8;
  const std::int64_t depth = bytes ? 32 : 16, steps = 4;
  // In units of 16 bytes: 32 bytes of a row if k is inner, otherwise 16 rows of 128 bytes.
  auto step = [](bool k_inner) { return k_inner ? 2 : 128; };
  const std::string a = fmt::format("${}", 2 * count), b = fmt::format("${}", 2 * count + 1),
                    first = fmt::format("${}", 2 * count + 2);
  std::string text = "{\n.reg .pred first, other;\n.reg .b64 a, b;\n";
  text += fmt::format("setp.ne.b32 first, {}, 0;\nsetp.eq.b32 other, {}, {};\nwgmma.fence.sync.aligned;\n", first,
                      first, first);
  for (std::int64_t i = 0; i < steps; ++i)
    for (std::int64_t block = 0; block < s.row_blocks; ++block) {
      std::string registers;
      for (std::int64_t r = 0; r < of_block; ++r) registers += fmt::format("{}${}", r ? "," : "", block * of_block + r);
      text += fmt::format("add.s64 a, {}, {};\nadd.s64 b, {}, {};\n", a,
                          i * step(s.a_k_inner) + block * block_bytes / 16, b, i * step(s.b_k_inner));
      text += fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {{{}}}, a, b, {}", s.columns, depth,
                          integers ? "s32" : "f32", type_name(s.a), type_name(s.b), registers, i ? "other" : "first");
      if (!integers) text += ", 1, 1";
      if (!bytes) text += fmt::format(", {}, {}", s.a_k_inner ? 0 : 1, s.b_k_inner ? 0 : 1);
      text += ";\n";
    }
  text += "wgmma.commit_group.sync.aligned;\n}";
  std::string constraints;
  for (std::int64_t i = 0; i < count; ++i) constraints += integers ? "=r," : "=f,";
  for (std::int64_t i = 0; i < count; ++i) constraints += fmt::format("{},", i);
  values operands = sums;
  operands.push_back(descriptor(a_address, s.a_k_inner));
  operands.push_back(descriptor(b_address, s.b_k_inner));
  operands.push_back(accumulate);
  return assembly(text, constraints + "l,l,r,~{memory}", operands,
                  std::vector<mlir::Type>(static_cast<std::size_t>(count), sum_type(s)));
}

values hopper_code::multiply_registers(const wgmma_shape& s, const values& words, Value b_address,
                                       std::span<const register_product> products, Value accumulate,
                                       const values& sums) {
  const auto count = static_cast<std::int64_t>(sums.size()), first_word = 2 * count,
             factor = first_word + static_cast<std::int64_t>(words.size());
  const std::string any = fmt::format("${}", factor + 1);
  std::string results, text = "{\n.reg .pred first, other;\n.reg .b64 b;\n", constraints;
  for (std::int64_t r = 0; r < count; ++r) results += fmt::format("{}${}", r ? "," : "", r);
  text += fmt::format("setp.ne.b32 first, {0}, 0;\nsetp.eq.b32 other, {0}, {0};\nwgmma.fence.sync.aligned;\n", any);
  for (const register_product& each : products) {
    const std::int64_t w = first_word + each.word;
    text += fmt::format("add.s64 b, ${}, {};\n", factor, each.bytes / 16);
    text += fmt::format(
        "wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, {{${}, ${}, ${}, ${}}}, b, {}, 1, 1, {};\n",
        s.columns, type_name(s.a), type_name(s.b), results, w, w + 1, w + 2, w + 3,
        &each == products.data() ? "first" : "other", s.b_k_inner ? 0 : 1);
  }
  text += "wgmma.commit_group.sync.aligned;\n}";
  for (std::int64_t i = 0; i < count; ++i) constraints += "=f,";
  for (std::int64_t i = 0; i < count; ++i) constraints += fmt::format("{},", i);
  for (std::size_t i = 0; i < words.size(); ++i) constraints += "r,";
  values operands = sums;
  operands.insert(operands.end(), words.begin(), words.end());
  operands.push_back(descriptor(b_address, s.b_k_inner));
  operands.push_back(accumulate);
  return assembly(text, constraints + "l,r,~{memory}", operands,
                  std::vector<mlir::Type>(sums.size(), code_.builder.getF32Type()));
}

void hopper_code::wait_all_but_last() { assembly("wgmma.wait_group.sync.aligned 1;", "~{memory}", {}); }

values hopper_code::finish(const values& sums) {
  // Pass the sums through the assembly, so that they are not read before it.
  std::string constraints;
  mlir::Type type = sums[0].getType();
  for (std::size_t i = 0; i < sums.size(); ++i) constraints += type.isF32() ? "=f," : "=r,";
  for (std::size_t i = 0; i < sums.size(); ++i) constraints += fmt::format("{},", i);
  return assembly("wgmma.wait_group.sync.aligned 0;", constraints + "~{memory}", sums,
                  std::vector<mlir::Type>(sums.size(), type));
}

}  // namespace kiln::gpu
