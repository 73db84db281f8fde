#include "ir_kernels.hpp"

#include <memory>
#include <stdexcept>

#include "llvm/ADT/SmallString.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "mlir_bridge/back_ends/amd/initialize.hpp"
#include "mlir_bridge/back_ends/back_end.hpp"

namespace kiln::test {
namespace {

std::string compile(const std::string& ir, const std::string& triple_name, const std::string& processor,
                    llvm::CodeGenFileType type) {
  gpu::initialize_amd();
  nvidia_back_end.initialize();
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssemblyString(ir, diagnostic, context);
  if (!module) throw std::runtime_error(diagnostic.getMessage().str());
  std::string message;
  llvm::Triple triple(triple_name);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target) throw std::runtime_error(message);
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, processor, "", llvm::TargetOptions(), llvm::Reloc::PIC_));
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  if (triple.isAMDGPU()) module->addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 600);
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, type)) throw std::runtime_error("cannot emit");
  passes.run(*module);
  return bytes.str().str();
}

}  // namespace

std::vector<std::byte> compile_amdgpu(const std::string& ir, const std::string& processor) {
  std::string bytes = compile(ir, "amdgcn-amd-amdhsa", processor, llvm::CodeGenFileType::ObjectFile);
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

std::string compile_nvptx(const std::string& ir, const std::string& processor) {
  return compile(ir, "nvptx64-nvidia-cuda", processor, llvm::CodeGenFileType::AssemblyFile);
}

namespace {

const std::string copy_kernel = R"(
define amdgpu_kernel void @copy(ptr addrspace(1) %from, ptr addrspace(1) %to) {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr float, ptr addrspace(1) %from, i32 %lane
  %q = getelementptr float, ptr addrspace(1) %to, i32 %lane
  %v = load float, ptr addrspace(1) %p
  store float %v, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
)";

}  // namespace

const std::string mfma_kernels = R"(
@tile = internal addrspace(3) global [128 x float] poison, align 16
define amdgpu_kernel void @product(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %d) {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <4 x half>, ptr addrspace(1) %a, i32 %lane
  %pb = getelementptr <4 x half>, ptr addrspace(1) %b, i32 %lane
  %va = load <4 x half>, ptr addrspace(1) %pa
  %vb = load <4 x half>, ptr addrspace(1) %pb
  %r = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> %va, <4 x half> %vb, <4 x float> zeroinitializer, i32 0, i32 0, i32 0)
  %slot = getelementptr <4 x float>, ptr addrspace(3) @tile, i32 %lane
  store <4 x float> %r, ptr addrspace(3) %slot
  %back = load volatile <4 x float>, ptr addrspace(3) %slot
  %pd = getelementptr <4 x float>, ptr addrspace(1) %d, i32 %lane
  store <4 x float> %back, ptr addrspace(1) %pd
  ret void
}
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half>, <4 x half>, <4 x float>, i32, i32, i32)
)" + copy_kernel;

const std::string wmma_kernels = R"(
@tile = internal addrspace(3) global [128 x float] poison, align 16
define amdgpu_kernel void @product(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %d) {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr <16 x half>, ptr addrspace(1) %a, i32 %lane
  %pb = getelementptr <16 x half>, ptr addrspace(1) %b, i32 %lane
  %va = load <16 x half>, ptr addrspace(1) %pa
  %vb = load <16 x half>, ptr addrspace(1) %pb
  %r = call <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half> %va, <16 x half> %vb, <8 x float> zeroinitializer)
  %slot = getelementptr <8 x float>, ptr addrspace(3) @tile, i32 %lane
  store <8 x float> %r, ptr addrspace(3) %slot
  %back = load volatile <8 x float>, ptr addrspace(3) %slot
  %pd = getelementptr <8 x float>, ptr addrspace(1) %d, i32 %lane
  store <8 x float> %back, ptr addrspace(1) %pd
  ret void
}
declare <8 x float> @llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half>, <16 x half>, <8 x float>)
)" + copy_kernel;

}  // namespace kiln::test
