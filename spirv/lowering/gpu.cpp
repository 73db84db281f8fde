// Entries for AMD and NVIDIA GPUs: applies the kernel calling conventions, and keeps amdgcn's intrinsics or maps them
// to NVIDIA's.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/error.hpp"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "spirv/lowering/indices.hpp"
#include "spirv/lowering/lowering.hpp"
#include "spirv/lowering/words.hpp"

namespace kiln::spirv {
namespace {

using llvm::CallInst;
using llvm::Value;
namespace intrinsic = llvm::Intrinsic;

Value* call(llvm::IRBuilder<>& b, intrinsic::ID id, std::initializer_list<Value*> operands = {},
            llvm::ArrayRef<llvm::Type*> overloads = {}) {
  return b.CreateCall(intrinsic::getOrInsertDeclaration(b.GetInsertBlock()->getModule(), id, overloads),
                      llvm::ArrayRef(operands.begin(), operands.size()));
}

// Numbers in a table of sizes that every driver accepts as an argument, in addition to some pointers.
constexpr std::size_t most_sizes = 3072 / sizeof(std::int64_t);

// ---- NVIDIA ----

// The active lanes as a mask of 32 bits.
Value* active(llvm::IRBuilder<>& b) { return call(b, intrinsic::nvvm_activemask); }

Value* shuffle(llvm::IRBuilder<>& b, Value* word, Value* from) {
  return call(b, intrinsic::nvvm_shfl_sync_idx_i32, {active(b), word, from, b.getInt32(31)});
}

Value* shuffle_any(llvm::IRBuilder<>& b, Value* v, Value* from) {
  return word_by_word(b, v, [&](Value* word) { return shuffle(b, word, from); });
}

Value* first_active(llvm::IRBuilder<>& b) {
  return b.CreateIntrinsic(b.getInt32Ty(), intrinsic::cttz, {active(b), b.getTrue()});
}

struct replacement_row {
  intrinsic::ID id;
  Value* (*make)(llvm::IRBuilder<>&, CallInst&);
};
const replacement_row nvidia_rows[] = {
    {intrinsic::amdgcn_workgroup_id_x,
     [](llvm::IRBuilder<>& b, CallInst&) { return call(b, intrinsic::nvvm_read_ptx_sreg_ctaid_x); }},
    {intrinsic::amdgcn_workgroup_id_y,
     [](llvm::IRBuilder<>& b, CallInst&) { return call(b, intrinsic::nvvm_read_ptx_sreg_ctaid_y); }},
    {intrinsic::amdgcn_workgroup_id_z,
     [](llvm::IRBuilder<>& b, CallInst&) { return call(b, intrinsic::nvvm_read_ptx_sreg_ctaid_z); }},
    {intrinsic::amdgcn_s_barrier,
     [](llvm::IRBuilder<>& b, CallInst&) {
       return call(b, intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
     }},
    {intrinsic::amdgcn_wave_barrier,
     [](llvm::IRBuilder<>& b, CallInst&) { return call(b, intrinsic::nvvm_bar_warp_sync, {active(b)}); }},
    {intrinsic::amdgcn_mbcnt_lo,
     [](llvm::IRBuilder<>& b, CallInst& c) {
       Value* below = call(b, intrinsic::nvvm_read_ptx_sreg_lanemask_lt);
       if (auto* all = llvm::dyn_cast<llvm::ConstantInt>(c.getArgOperand(0)); all && all->isMinusOne())
         return b.CreateAdd(call(b, intrinsic::nvvm_read_ptx_sreg_laneid), c.getArgOperand(1));
       return b.CreateAdd(b.CreateUnaryIntrinsic(intrinsic::ctpop, b.CreateAnd(c.getArgOperand(0), below)),
                          c.getArgOperand(1));
     }},
    {intrinsic::amdgcn_mbcnt_hi, [](llvm::IRBuilder<>&, CallInst& c) { return c.getArgOperand(1); }},
    {intrinsic::amdgcn_ds_bpermute,
     [](llvm::IRBuilder<>& b, CallInst& c) {
       return shuffle(b, c.getArgOperand(1), b.CreateLShr(c.getArgOperand(0), 2));
     }},
    {intrinsic::amdgcn_readlane,
     [](llvm::IRBuilder<>& b, CallInst& c) { return shuffle_any(b, c.getArgOperand(0), c.getArgOperand(1)); }},
    {intrinsic::amdgcn_readfirstlane,
     [](llvm::IRBuilder<>& b, CallInst& c) { return shuffle_any(b, c.getArgOperand(0), first_active(b)); }},
    {intrinsic::amdgcn_ballot,
     [](llvm::IRBuilder<>& b, CallInst& c) {
       return b.CreateZExtOrTrunc(call(b, intrinsic::nvvm_vote_ballot_sync, {active(b), c.getArgOperand(0)}),
                                  c.getType());
     }},
};

// Maps amdgcn's memory scopes to NVIDIA's.
struct scope_row {
  llvm::StringRef amd, nvidia;
};
constexpr scope_row scopes[] = {
    {"agent", "device"}, {"device", "device"}, {"workgroup", "block"}, {"wavefront", "block"}};

void translate_scopes(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  auto translated = [&](llvm::SyncScope::ID id) {
    llvm::SmallVector<llvm::StringRef> names;
    context.getSyncScopeNames(names);
    for (const scope_row& row : scopes)
      if (id < names.size() && names[id] == row.amd) return context.getOrInsertSyncScopeID(row.nvidia);
    return id;
  };
  auto is_barrier = [](llvm::Instruction* i) {
    auto* c = llvm::dyn_cast_or_null<CallInst>(i);
    return c && c->getIntrinsicID() == intrinsic::nvvm_barrier_cta_sync_aligned_all;
  };
  llvm::SyncScope::ID workgroup = context.getOrInsertSyncScopeID("workgroup"),
                      wave = context.getOrInsertSyncScopeID("wavefront");
  std::vector<llvm::Instruction*> implied;
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& i : block) {
        if (auto* fence = llvm::dyn_cast<llvm::FenceInst>(&i)) {
          // Remove redundant fences: a barrier orders the memory of its workgroup, and a wave barrier that of its
          // lanes.
          bool at_barrier = is_barrier(i.getNextNode()) || is_barrier(i.getPrevNode());
          if ((fence->getSyncScopeID() == workgroup && at_barrier) || fence->getSyncScopeID() == wave)
            implied.push_back(fence);
          fence->setSyncScopeID(translated(fence->getSyncScopeID()));
        } else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) {
          update->setSyncScopeID(translated(update->getSyncScopeID()));
        } else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i)) {
          exchange->setSyncScopeID(translated(exchange->getSyncScopeID()));
        } else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i); load && load->isAtomic()) {
          load->setSyncScopeID(translated(load->getSyncScopeID()));
        } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i); store && store->isAtomic()) {
          store->setSyncScopeID(translated(store->getSyncScopeID()));
        }
      }
  for (llvm::Instruction* fence : implied) fence->eraseFromParent();
}

// ---- AMD ----

// Our buffers are in the device's own memory, where all of the hardware's atomic operations work.
void allow_hardware_atomics(llvm::Function& function) {
  llvm::MDNode* yes = llvm::MDNode::get(function.getContext(), {});
  for (llvm::BasicBlock& block : function)
    for (llvm::Instruction& i : block)
      if (llvm::isa<llvm::AtomicRMWInst>(i))
        for (const char* fact :
             {"amdgpu.no.fine.grained.memory", "amdgpu.no.remote.memory", "amdgpu.ignore.denormal.mode"})
          i.setMetadata(fact, yes);
}

// A ballot has one bit per lane of the wave.
Value* amd_ballot(llvm::IRBuilder<>& b, CallInst& c, int wave) {
  return b.CreateZExtOrTrunc(
      call(b, intrinsic::amdgcn_ballot, {c.getArgOperand(0)}, {b.getIntNTy(static_cast<unsigned>(wave))}), c.getType());
}

// Passes the table of sizes by value; the driver copies it with the pointers.
void pass_sizes(llvm::Function& entry, std::size_t sizes, bool nvidia) {
  if (sizes > most_sizes)
    throw error(error_kind::unsupported,
                fmt::format("a kernel for all sizes needs {} of them, more than a GPU's kernel "
                            "has arguments: bind its dimensions",
                            sizes));
  llvm::LLVMContext& context = entry.getContext();
  const auto table = static_cast<unsigned>(entry.arg_size() - 1);
  auto* type = llvm::ArrayType::get(llvm::Type::getInt64Ty(context), sizes);
  entry.addParamAttr(table, llvm::Attribute::getWithAlignment(context, llvm::Align(8)));
  entry.addParamAttr(table, nvidia ? llvm::Attribute::getWithByValType(context, type)
                                   : llvm::Attribute::getWithByRefType(context, type));
  if (nvidia) entry.addParamAttr(table, llvm::Attribute::get(context, "nvvm.grid_constant"));
}

void lower_entry(llvm::Function& entry, const launch_site& launch, const lowering_target& target) {
  check_shared_memory(entry, launch, target);
  bool nvidia = target.kind == machine_kind::nvidia;
  if (launch.table) pass_sizes(entry, launch.table, nvidia);
  std::int64_t items = launch.block[0] * launch.block[1] * launch.block[2];
  intrinsic::ID item_id = nvidia ? static_cast<intrinsic::ID>(intrinsic::nvvm_read_ptx_sreg_tid_x)
                                 : static_cast<intrinsic::ID>(intrinsic::amdgcn_workitem_id_x);
  // The launch is one-dimensional on the device. The other indices are computed from the linear index.
  llvm::IRBuilder<> first(&entry.getEntryBlock(), entry.getEntryBlock().getFirstInsertionPt());
  auto* linear = llvm::cast<CallInst>(call(first, item_id));
  linear->addRetAttr(llvm::Attribute::get(
      entry.getContext(), llvm::Attribute::Range,
      llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, static_cast<std::uint64_t>(items)))));
  index_values indices{linear, nullptr, launch.table ? entry.getArg(entry.arg_size() - 1) : nullptr};
  if (launch.has_open_grid())
    indices.group = call(first, nvidia ? static_cast<intrinsic::ID>(intrinsic::nvvm_read_ptx_sreg_ctaid_x)
                                       : static_cast<intrinsic::ID>(intrinsic::amdgcn_workgroup_id_x));
  for (CallInst* c : calls_of(entry)) {
    if (c == linear || c == indices.group) continue;
    llvm::IRBuilder<> b(c);
    Value* result = index_replacement(b, *c, launch, target.wave, indices);
    if (!result && nvidia) {
      auto row = std::ranges::find(nvidia_rows, c->getIntrinsicID(), &replacement_row::id);
      if (row != std::end(nvidia_rows)) result = row->make(b, *c);
    }
    if (!result && !nvidia && c->getIntrinsicID() == intrinsic::amdgcn_ballot &&
        !c->getType()->isIntegerTy(static_cast<unsigned>(target.wave)))
      result = amd_ballot(b, *c, target.wave);
    if (!result && nvidia) result = portable_replacement(b, *c);
    if (result) replace(*c, result);
  }
  entry.addFnAttr("target-cpu", target.processor);
  if (!target.features.empty()) entry.addFnAttr("target-features", target.features);
  entry.addFnAttr("no-trapping-math", "true");
  std::string count = std::to_string(items);
  if (nvidia) {
    entry.setCallingConv(llvm::CallingConv::PTX_Kernel);
    entry.addFnAttr("nvvm.maxntid", count);
    return;
  }
  allow_hardware_atomics(entry);
  entry.setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
  entry.addFnAttr("amdgpu-flat-work-group-size", count + "," + count);
  entry.addFnAttr("uniform-work-group-size", "true");
  for (const char* absent :
       {"amdgpu-no-dispatch-ptr", "amdgpu-no-queue-ptr", "amdgpu-no-implicitarg-ptr", "amdgpu-no-dispatch-id",
        "amdgpu-no-hostcall-ptr", "amdgpu-no-heap-ptr", "amdgpu-no-multigrid-sync-arg", "amdgpu-no-default-queue",
        "amdgpu-no-completion-action", "amdgpu-no-workitem-id-y", "amdgpu-no-workitem-id-z"})
    entry.addFnAttr(absent);
}

}  // namespace

void lower_gpu(llvm::Module& module, std::span<const launch_site> launches, const lowering_target& target) {
  for (const launch_site& launch : launches) lower_entry(*module.getFunction(launch.symbol), launch, target);
  if (target.kind == machine_kind::nvidia) translate_scopes(module);
  else module.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", 600);
  refuse_leftovers(module, target.kind);
}

}  // namespace kiln::spirv
