// Metadata of code objects, counts in PTX, disassembly.
#include <gmock/gmock.h>

#include <algorithm>

#include "ir/error.hpp"
#include "ir_kernels.hpp"
#include "mlir_bridge/back_ends/amd/code_object_info.hpp"
#include "mlir_bridge/back_ends/amd/disassembly.hpp"
#include "mlir_bridge/back_ends/amd/link.hpp"
#include "mlir_bridge/back_ends/nvidia/ptx_info.hpp"

namespace kiln::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(code_object_info, reads_registers_memory_and_arguments) {
  auto object = gpu::link_code_object(compile_amdgpu(mfma_kernels, "gfx942"));
  auto kernels = gpu::read_code_object(object);
  ASSERT_EQ(kernels.size(), 2u);
  const auto& product = kernels[0];
  EXPECT_EQ(product.name, "product");
  EXPECT_EQ(product.wavefront, 64);
  EXPECT_EQ(product.static_lds, 512);
  EXPECT_EQ(product.scratch, 0);
  EXPECT_EQ(product.vgpr_spills, 0);
  EXPECT_GT(product.vgprs, 4);
  EXPECT_LT(product.vgprs, 40);
  EXPECT_GT(product.sgprs, 0);
  EXPECT_GE(product.argument_bytes, 24);
  ASSERT_GE(product.arguments.size(), 3u);
  EXPECT_EQ(product.arguments[2], (gpu::argument_info{16, 8, "global_buffer"}));
  EXPECT_EQ(kernels[1].name, "copy");
  EXPECT_EQ(kernels[1].static_lds, 0);

  auto rdna = gpu::read_code_object(compile_amdgpu(wmma_kernels, "gfx1100"));  // not linked yet
  ASSERT_EQ(rdna.size(), 2u);
  EXPECT_EQ(rdna[0].wavefront, 32);
  EXPECT_EQ(rdna[0].agprs, 0);
}

TEST(code_object_info, reports_spills_and_scratch) {
  // 64 KB on the stack of each work item, indexed by a run-time value.
  auto kernels = gpu::read_code_object(compile_amdgpu(R"(
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %i) {
  %a = alloca [4096 x i32], addrspace(5)
  %e = getelementptr [4096 x i32], ptr addrspace(5) %a, i32 0, i32 %i
  store volatile i32 1, ptr addrspace(5) %e
  ret void
})",
                                                      "gfx1100"));
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_GE(kernels[0].scratch, 16384);
}

TEST(code_object_info, refuses_damage) {
  auto object = gpu::link_code_object(compile_amdgpu(mfma_kernels, "gfx942"));
  EXPECT_THROW(gpu::read_code_object({}), error);
  EXPECT_THROW(gpu::read_code_object(std::span(object).first(100)), error);
  auto at = std::search(object.begin(), object.end(), reinterpret_cast<const std::byte*>("amdhsa.kernels"),
                        reinterpret_cast<const std::byte*>("amdhsa.kernels") + 14);
  ASSERT_NE(at, object.end());
  std::size_t begin = at - object.begin() - 8;
  int refused = 0;
  for (std::size_t i = 0; i < 700; ++i)
    for (auto flip : {std::byte{0xff}, std::byte{0x01}, std::byte{0x80}}) {
      auto damaged = object;
      damaged[begin + i] ^= flip;
      try {
        gpu::read_code_object(damaged);
      } catch (const error& e) {
        EXPECT_EQ(e.kind(), error_kind::corrupted) << e.what();
        ++refused;
      }
    }
  EXPECT_GT(refused, 300);
  // Endlessly nested arrays.
  auto nested = object;
  std::fill(nested.begin() + begin, nested.begin() + begin + 600, std::byte{0x91});
  EXPECT_THROW(gpu::read_code_object(nested), error);
}

TEST(disassembly, shows_one_kernel_and_counts_its_matrix_instructions) {
  auto relocatable = compile_amdgpu(mfma_kernels, "gfx942"), linked = gpu::link_code_object(relocatable);
  auto lines = gpu::disassemble(linked, "product");
  EXPECT_EQ(lines, gpu::disassemble(relocatable, "product"));
  EXPECT_THAT(lines, Contains(HasSubstr("v_mfma_f32_16x16x16_f16 ")));
  EXPECT_THAT(lines, Contains(HasSubstr("s_endpgm")));
  EXPECT_THAT(lines.front(), testing::StartsWith("0x0000: s_"));
  EXPECT_THAT(gpu::disassemble(linked, "copy"), testing::Not(Contains(HasSubstr("mfma"))));
  EXPECT_EQ(gpu::count_matrix_instructions(linked, "product"), (gpu::matrix_instruction_counts{.mfma = 1}));
  EXPECT_EQ(gpu::count_matrix_instructions(linked, "copy").total(), 0);

  auto rdna = gpu::link_code_object(compile_amdgpu(wmma_kernels, "gfx1100"));
  EXPECT_EQ(gpu::count_matrix_instructions(rdna, "product"), (gpu::matrix_instruction_counts{.wmma = 1}));
}

TEST(disassembly, counts_dot_products_and_names_branch_targets) {
  auto object = compile_amdgpu(R"(
define amdgpu_kernel void @k(ptr addrspace(1) %p, <2 x half> %a, <2 x half> %b, i32 %n, i32 %x, i32 %y) {
entry:
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %loop]
  %s = phi float [0.0, %entry], [%d, %loop]
  %t = phi i32 [0, %entry], [%e, %loop]
  %d = call float @llvm.amdgcn.fdot2(<2 x half> %a, <2 x half> %b, float %s, i1 false)
  %e = call i32 @llvm.amdgcn.sdot4(i32 %x, i32 %y, i32 %t, i1 false)
  %next = add i32 %i, 1
  %again = icmp ult i32 %next, %n
  br i1 %again, label %loop, label %done
done:
  store volatile float %d, ptr addrspace(1) %p
  store volatile i32 %e, ptr addrspace(1) %p
  ret void
}
declare float @llvm.amdgcn.fdot2(<2 x half>, <2 x half>, float, i1)
declare i32 @llvm.amdgcn.sdot4(i32, i32, i32, i1)
)",
                               "gfx1030");
  auto counts = gpu::count_matrix_instructions(object, "k");
  EXPECT_EQ(counts.dot2, 1);
  EXPECT_EQ(counts.dot4, 1);
  EXPECT_THAT(gpu::disassemble(object, "k"), Contains(testing::ContainsRegex("s_cbranch_[a-z0-9]+ .*// 0x00")));
}

TEST(disassembly, refuses_other_kernels_and_objects) {
  auto linked = gpu::link_code_object(compile_amdgpu(mfma_kernels, "gfx942"));
  try {
    gpu::disassemble(linked, "nothing");
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::usage);
    EXPECT_THAT(e.what(), HasSubstr("nothing"));
  }
  EXPECT_THROW(gpu::disassemble({}, "product"), error);
  // Replaces the processor's name in the metadata by one that does not exist.
  auto unknown = linked;
  std::string_view text(reinterpret_cast<const char*>(unknown.data()), unknown.size());
  std::size_t at = text.find("amdhsa--gfx942");
  ASSERT_NE(at, std::string_view::npos);
  unknown[at + 13] = std::byte{'9'};
  EXPECT_EQ(gpu::read_processor(linked), "gfx942");
  EXPECT_EQ(gpu::read_processor(unknown), "gfx949");
  try {
    gpu::disassemble(unknown, "product");
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    EXPECT_THAT(e.what(), HasSubstr("gfx949"));
  }
}

TEST(ptx_info, counts_matrix_instructions_and_local_memory) {
  std::string text = compile_nvptx(R"(
define ptx_kernel void @with_mma(ptr addrspace(1) %p, <2 x half> %a, <2 x half> %b) {
  %r = call { float, float, float, float } @llvm.nvvm.mma.m16n8k8.row.col.f32.f32(<2 x half> %a, <2 x half> %a, <2 x half> %b, float 0.0, float 0.0, float 0.0, float 0.0)
  %v = extractvalue { float, float, float, float } %r, 1
  store float %v, ptr addrspace(1) %p
  ret void
}
define ptx_kernel void @with_local(ptr addrspace(1) %p, i32 %i) {
  %a = alloca [64 x i32]
  %e = getelementptr [64 x i32], ptr %a, i32 0, i32 %i
  store volatile i32 1, ptr %e
  ret void
}
declare { float, float, float, float } @llvm.nvvm.mma.m16n8k8.row.col.f32.f32(<2 x half>, <2 x half>, <2 x half>, float, float, float, float)
)",
                                   "sm_80");
  auto entries = gpu::read_ptx(text);
  ASSERT_EQ(entries.size(), 2u) << text;
  EXPECT_EQ(entries[0].name, "with_mma");
  EXPECT_EQ(entries[0].mma, 1) << text;
  EXPECT_EQ(entries[0].local_bytes, 0);
  EXPECT_EQ(entries[1].mma, 0);
  EXPECT_EQ(entries[1].local_bytes, 256) << text;

  auto group = gpu::read_ptx(
      ".version 8.3\n.target sm_90a\n.visible .entry k(\n)\n{\n wgmma.fence.sync.aligned;\n\t{ "
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0; }\n}\n");
  ASSERT_EQ(group.size(), 1u);
  EXPECT_EQ(group[0].wgmma, 1);
  EXPECT_EQ(group[0].mma, 0);
  EXPECT_THROW(gpu::read_ptx("not ptx"), error);
}

}  // namespace
}  // namespace kiln::test
