// Matrix instructions of AMD kernels run with all lanes of a wave (mlir_bridge/back_ends/amd/pinned_instructions.hpp):
// the check itself, LLVM's marks, LLVM IR from any generator, and our products and attentions. test/long/exec_masks.py
// checks whole models.
#include "exec_mask.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <memory>

#include "../cpu_contraction/fusions.hpp"
#include "gpu_targets.hpp"
#include "ir_kernels.hpp"
#include "jit/targets.hpp"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "mlir_bridge/back_ends/amd/disassembly.hpp"
#include "mlir_bridge/back_ends/amd/initialize.hpp"
#include "mlir_bridge/back_ends/amd/pinned_instructions.hpp"
#include "mlir_bridge/back_ends/machine_code.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln::test {
namespace {

using enum element_type;
using testing::ElementsAre;
using testing::IsEmpty;

// --- the check

// Returns how many matrix instructions may run with a narrowed EXEC. Each line is one instruction of 4 bytes; "@N" as a
// branch target is the N-th instruction.
std::size_t narrowed(std::vector<std::string> code) {
  code.push_back("s_endpgm");
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (auto at = code[i].find('@'); at != std::string::npos)
      code[i] = fmt::format("{}4  // 0x{:04x}", code[i].substr(0, at), std::stoul(code[i].substr(at + 1)) * 4);
    code[i] = fmt::format("0x{:04x}: {}", i * 4, code[i]);
  }
  return check_exec_mask(code).narrowed.size();
}

constexpr const char* wmma = "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]";

TEST(exec_mask_check, finds_instructions_behind_a_guard) {
  EXPECT_EQ(narrowed({wmma, "s_and_saveexec_b32 s2, vcc_lo", "s_cbranch_execz @3"}), 0u);
  EXPECT_EQ(narrowed({"s_and_saveexec_b32 s2, vcc_lo", "s_cbranch_execz @3", wmma}), 1u);
  EXPECT_EQ(narrowed({"s_and_saveexec_b32 s2, vcc_lo", wmma, "s_or_b32 exec_lo, exec_lo, s2", wmma}), 1u);
  EXPECT_EQ(narrowed({"s_mov_b32 s2, exec_lo", "v_cmpx_gt_i32_e32 8, v0", "s_cbranch_execz @4", wmma,
                      "s_or_b32 exec_lo, exec_lo, s2", wmma}),
            1u);
  EXPECT_EQ(narrowed({"s_and_saveexec_b64 s[2:3], vcc", "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]",
                      "s_or_b64 exec, exec, s[2:3]", wmma}),
            1u);
}

TEST(exec_mask_check, a_mask_that_was_written_again_restores_nothing) {
  EXPECT_EQ(narrowed({"s_and_saveexec_b32 s2, vcc_lo", "s_mov_b32 s2, 0", "s_or_b32 exec_lo, exec_lo, s2", wmma}), 1u);
  EXPECT_EQ(narrowed({"s_and_saveexec_b32 s2, vcc_lo", "s_load_b128 s[0:3], s[4:5], null",
                      "s_or_b32 exec_lo, exec_lo, s2", wmma}),
            1u);
  EXPECT_EQ(
      narrowed({"s_and_saveexec_b32 s2, vcc_lo", "v_cmp_gt_i32_e64 s2, 8, v0", "s_or_b32 exec_lo, exec_lo, s2", wmma}),
      1u);
  EXPECT_EQ(
      narrowed({"s_and_saveexec_b32 s2, vcc_lo", "s_mov_b32 s4, s2", "s_mov_b32 s2, 0", "s_mov_b32 exec_lo, s4", wmma}),
      0u);
  EXPECT_EQ(narrowed({"s_mov_b32 exec_lo, s4", wmma, "s_mov_b32 exec_lo, -1", wmma}), 1u);
  // Half of a wave of 64 lanes.
  EXPECT_EQ(narrowed({"s_mov_b64 exec, s[4:5]", "s_mov_b32 exec_lo, -1", wmma}), 1u);
}

TEST(exec_mask_check, knows_if_and_else) {
  const std::vector<std::string> join_by_or{"s_and_saveexec_b32 s2, vcc_lo",
                                            "s_xor_b32 s2, exec_lo, s2",
                                            wmma,
                                            "s_or_saveexec_b32 s3, s2",
                                            wmma,
                                            "s_xor_b32 exec_lo, exec_lo, s3",
                                            wmma,
                                            "s_or_b32 exec_lo, exec_lo, s3",
                                            wmma};
  EXPECT_EQ(narrowed(join_by_or), 2u);
  EXPECT_EQ(narrowed({"s_and_saveexec_b32 s2, vcc_lo", "s_xor_b32 s2, exec_lo, s2", wmma,
                      "s_and_not1_saveexec_b32 s2, s2", wmma, "s_or_b32 exec_lo, exec_lo, s2", wmma}),
            2u);
  // EXEC is narrowed on one of two paths only.
  EXPECT_EQ(narrowed({"s_cbranch_scc1 @2", "s_and_saveexec_b32 s2, vcc_lo", wmma}), 1u);
  EXPECT_EQ(narrowed({"s_cbranch_scc1 @3", "s_and_saveexec_b32 s2, vcc_lo", "s_or_b32 exec_lo, exec_lo, s2", wmma}),
            0u);
}

TEST(exec_mask_check, knows_loops_that_lanes_leave_one_by_one) {
  const std::vector<std::string> loop{"s_mov_b32 s4, 0",
                                      wmma,
                                      "s_and_b32 s5, exec_lo, vcc_lo",
                                      "s_or_b32 s4, s5, s4",
                                      "s_and_not1_b32 exec_lo, exec_lo, s4",
                                      "s_cbranch_execnz @1"};
  EXPECT_EQ(narrowed(loop), 1u);
  auto continued = loop;
  continued.insert(continued.end(), {"s_or_b32 exec_lo, exec_lo, s4", wmma});
  EXPECT_EQ(narrowed(continued), 1u);
  // A loop that all lanes leave together.
  EXPECT_EQ(narrowed({wmma, "s_add_i32 s4, s4, 1", "s_cmp_lt_i32 s4, 8", "s_cbranch_scc1 @0", wmma}), 0u);
}

TEST(exec_mask_check, refuses_jumps_out_of_the_code) {
  EXPECT_THROW(narrowed({"s_setpc_b64 s[0:1]"}), std::runtime_error);
  EXPECT_THROW(narrowed({"s_branch @77"}), std::runtime_error);
}

// --- LLVM

// Fails if another LLVM version marks different instructions. Then update the table of pinned_instructions.cpp.
TEST(pinned_instructions, the_table_has_what_llvm_does_not_mark_as_convergent) {
  gpu::initialize_amd();
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(llvm::Triple("amdgcn-amd-amdhsa"), message);
  ASSERT_TRUE(target) << message;
  std::unique_ptr<llvm::MCInstrInfo> instructions(target->createMCInstrInfo());
  std::vector<int> unmarked(gpu::unmarked_matrix_instructions().size());
  for (unsigned opcode = 0; opcode < instructions->getNumOpcodes(); ++opcode) {
    const std::string_view name = instructions->getName(opcode);
    const bool multiplies = name.starts_with("V_WMMA_") || name.starts_with("V_SWMMAC_") ||
                            name.starts_with("V_MFMA_") || name.starts_with("V_SMFMAC_");
    // This instruction loads the scales of the next one; LLVM combines the two when it writes the code.
    if (!multiplies || name.starts_with("V_MFMA_LD_SCALE") || instructions->get(opcode).isConvergent()) continue;
    bool known = false;
    for (std::size_t row = 0; row < unmarked.size(); ++row)
      if (name.starts_with(gpu::unmarked_matrix_instructions()[row].opcode)) known = true, ++unmarked[row];
    EXPECT_TRUE(known) << name;
    // gfx12 shares the names up to the last part.
    EXPECT_EQ(name.find("_gfx12"), std::string_view::npos) << name;
  }
  for (int count : unmarked) EXPECT_GT(count, 0);
}

// A product whose result, or its square, is stored only by the first `n` lanes, as any generator could emit it.
std::string guarded_product(const std::string& factor, const std::string& result, const std::string& call,
                            bool squared) {
  const std::string multiply = result.find("float") != std::string::npos ? "fmul " : "mul ";
  return "define amdgpu_kernel void @product(ptr addrspace(1) %a, ptr addrspace(1) %c, i32 %n) {\n"
         "  %lane = call i32 @llvm.amdgcn.workitem.id.x()\n"
         "  %from = getelementptr " +
         factor +
         ", ptr addrspace(1) %a, i32 %lane\n"
         "  %x = load " +
         factor +
         ", ptr addrspace(1) %from\n"
         "  %d = call " +
         result + " " + call +
         "\n"
         "  %square = " +
         multiply + result +
         " %d, %d\n"
         "  %inside = icmp ult i32 %lane, %n\n"
         "  br i1 %inside, label %store, label %done\n"
         "store:\n"
         "  %to = getelementptr " +
         result +
         ", ptr addrspace(1) %c, i32 %lane\n"
         "  store " +
         result + (squared ? " %square" : " %d") +
         ", ptr addrspace(1) %to\n"
         "  br label %done\n"
         "done:\n"
         "  ret void\n"
         "}\n";
}

struct product_case {
  const char *target, *factor, *result, *call;
  bool sunk_by_llvm;
};
const product_case product_cases[] = {
    {"gfx1100", "<16 x half>", "<8 x float>",
     "@llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half> %x, <16 x half> %x, <8 x float> zeroinitializer)",
     true},
    {"gfx1151", "<4 x i32>", "<8 x i32>",
     "@llvm.amdgcn.wmma.i32.16x16x16.iu8.v8i32.v4i32(i1 true, <4 x i32> %x, i1 true, <4 x i32> %x, <8 x i32> "
     "zeroinitializer, i1 false)",
     true},
    {"gfx1201", "<8 x half>", "<8 x float>",
     "@llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16(<8 x half> %x, <8 x half> %x, <8 x float> zeroinitializer)",
     false},
    {"gfx942", "<4 x half>", "<4 x float>",
     "@llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> %x, <4 x half> %x, <4 x float> zeroinitializer, i32 0, i32 0, i32 "
     "0)",
     false},
    {"gfx950", "<8 x i32>", "<4 x float>",
     "@llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v8i32.v8i32(<8 x i32> %x, <8 x i32> %x, <4 x float> "
     "zeroinitializer, i32 0, i32 0, i32 "
     "0, i32 7, i32 0, i32 7)",
     true},
};

// All AMD kernels pass through optimize() and emit_object(), those from SPIR-V and custom operators too.
void check_guarded_product(const product_case& c, bool squared) {
  SCOPED_TRACE(c.target);
  const std::string text = guarded_product(c.factor, c.result, c.call, squared);
  const exec_mask_report alone = check_exec_mask(gpu::disassemble(compile_amdgpu(text, c.target), "product"));
  EXPECT_EQ(alone.narrowed.size(), c.sunk_by_llvm ? 1u : 0u) << "LLVM alone";

  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(text, diagnostic, context);
  ASSERT_TRUE(module) << diagnostic.getMessage().str();
  module->addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 600);
  const target_row target = find_target(c.target);
  codegen::optimize(*module, target, loop_optimization::unroll, /*short_pipeline=*/false);
  const exec_mask_report ours =
      check_exec_mask(gpu::disassemble(codegen::emit_object(*module, target, nullptr), "product"));
  EXPECT_EQ(ours.matrix_instructions, 1);
  EXPECT_THAT(ours.narrowed, IsEmpty());
}

TEST(pinned_instructions, products_stay_in_front_of_a_guarded_store) {
  for (const product_case& c : product_cases) check_guarded_product(c, false);
}

// LLVM moves the multiplication first, and the product follows it.
TEST(pinned_instructions, products_stay_in_front_of_guarded_arithmetic) {
  for (const product_case& c : product_cases) check_guarded_product(c, true);
}

// --- our kernels

std::vector<target_row> targets_with_wmma() {
  return {find_target("gfx1100"), find_target("gfx1151"), find_target("gfx1201")};
}

// All launches of the kernel; at least one has matrix instructions.
void check(const module& fusion, const kernel_configuration& configuration = {}) {
  static const compiler_context context;
  static const std::vector<target_row> rows = targets_with_wmma();
  for (const target_row& target : rows) {
    SCOPED_TRACE(target.name + "\n" + fusion.str());
    const native_kernel kernel =
        finalize(portable_kernel::parse(context, write_kernel(fusion, "kernel")), target, configuration);
    int matrix_instructions = 0;
    for (const launch& l : kernel.launches) {
      EXPECT_EQ(l.block % target.gpu.wave, 0);
      const exec_mask_report report = check_exec_mask(gpu::disassemble(kernel.object, l.symbol));
      matrix_instructions += report.matrix_instructions;
      EXPECT_THAT(report.narrowed, IsEmpty()) << l.symbol;
    }
    EXPECT_GT(matrix_instructions, 0);
  }
}

struct attention_case {
  dims_of query, key;
  bool causal = false, mask = false, residual = false;
  kernel_configuration configuration = {};
};

void check_attention(element_type type, const attention_case& c) {
  module m("kernel");
  std::vector<value> inputs{m.add_parameter("q", shape_of(type, c.query)), m.add_parameter("k", shape_of(type, c.key)),
                            m.add_parameter("v", shape_of(type, c.key))};
  if (c.mask) inputs.push_back(m.add_parameter("mask", shape_of(type, {c.query[2], c.key[2]})));
  value result = m.add(attention{.scale = 0.125, .causal = c.causal}, inputs);
  if (c.residual)
    result = m.add(elementwise{scalar_function::add}, {result, m.add_parameter("residual", result.type())});
  m.set_outputs({result}, {"y"});
  check(m, c.configuration);
}

TEST(exec_mask, attention) {
  const attention_case cases[] = {
      {{1, 12, 197, 64}, {1, 12, 197, 64}},                                       // vit_b_16
      {{1, 6, 1500, 64}, {1, 6, 1500, 64}},                                       // whisper_tiny_encoder
      {{1, 4, 100, 64}, {1, 4, 100, 64}, true},                                   // causal
      {{1, 8, 70, 64}, {1, 2, 70, 64}, true},                                     // heads share keys
      {{1, 8, 70, 64}, {1, 2, 90, 64}, false, true, true},                        // a mask, a residual
      {{1, 8, 1, 64}, {1, 2, 300, 64}},                                           // decode
      {{1, 32, 1, 128}, {1, 8, 1000, 128}},                                       // decode, keys straight from memory
      {{1, 8, 5, 128}, {1, 2, 200, 128}, true},                                   // the same, causal
      {{1, 2, 3, 64}, {1, 2, 547, 64}, false, false, false, {{"key_parts", 4}}},  // parts of the keys
      {{1, 2, 37, 128}, {1, 2, 131, 128}, false, false, false, {{"narrow", 0}}},
  };
  for (const attention_case& c : cases) check_attention(f16, c);
  check_attention(bf16, cases[0]);
  check_attention(bf16, cases[3]);
  check_attention(bf16, cases[6]);
}

TEST(exec_mask, attention_of_every_depth) {
  for (std::int64_t depth : {32, 40, 64, 80, 96, 128})
    check_attention(depth % 32 ? bf16 : f16, {{1, 2, 33, depth}, {1, 1, 47, depth}, depth % 64 == 0});
}

TEST(exec_mask, products) {
  for (auto [type, result] : {std::pair{f16, f16}, {bf16, bf16}, {i8, i32}}) {
    check(*dot_fusion({50, 144}, {144, 72}, {.type = result}, type, type, epilogue::bias_relu_residual));
    check(*dot_fusion({3, 65, 48}, {3, 33, 48}, {.transpose_b = true, .type = result}, type, type));
    check(
        *dot_fusion({64, 256}, {64, 256}, {.transpose_b = true, .type = result}, type, type),
        {{"tile_m", 32}, {"tile_n", 32}, {"part_m", 16}, {"part_n", 16}, {"chunks", 4}, {"stages", 2}, {"splits", 2}});
  }
  check(*dot_fusion({5, 1024}, {1000, 1024}, {.transpose_b = true, .type = f16}, f16, f16,
                    epilogue::sigmoid));  // few rows
}

TEST(exec_mask, convolutions) {
  convolution op;
  op.strides = op.dilations = {1, 1};
  op.pads_begin = op.pads_end = {1, 1};
  op.groups = 1;
  check(*convolution_fusion({1, 15, 13, 40}, {3, 3, 40, 70}, op, f16, epilogue::bias_relu));
  check(*convolution_fusion({2, 9, 9, 64}, {3, 3, 64, 33}, op, bf16, epilogue::two_outputs));
}

}  // namespace
}  // namespace kiln::test
