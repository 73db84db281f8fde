// Entries for the host: an entry runs a range of workgroups, one after another. Without synchronization points the
// items of a workgroup are a single loop that LLVM may vectorize; otherwise regions of items are scheduled
// (work_items.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/error.hpp"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "spirv/lowering/indices.hpp"
#include "spirv/lowering/lane_exchange.hpp"
#include "spirv/lowering/loops.hpp"
#include "spirv/lowering/lowering.hpp"
#include "spirv/lowering/scheduler.hpp"
#include "spirv/lowering/work_items.hpp"
#include "spirv/reader/reader.hpp"

namespace kiln::spirv {
namespace {

using llvm::BasicBlock;
using llvm::CallInst;
using llvm::Value;
using builder = llvm::IRBuilder<>;

// Limit on the stack of the thread that runs a workgroup.
constexpr std::uint64_t most_stack_bytes = 4 << 20;
constexpr std::uint64_t most_shared_bytes = 256 << 10;

// ---- the body: void(buffers..., i32 item, i32 group, ptr shared) ----

void simplify(llvm::Function& function) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager pipeline;
  pipeline.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  pipeline.addPass(llvm::EarlyCSEPass());
  pipeline.addPass(llvm::SimplifyCFGPass());
  pipeline.addPass(llvm::InstCombinePass());
  pipeline.addPass(llvm::SimplifyCFGPass());
  pipeline.addPass(llvm::ADCEPass());
  pipeline.run(function, functions);
}

llvm::Function* make_body(llvm::Function& entry) {
  llvm::LLVMContext& context = entry.getContext();
  std::vector<llvm::Type*> parameters(entry.getFunctionType()->params());
  llvm::Type* i32 = llvm::Type::getInt32Ty(context);
  parameters.insert(parameters.end(), {i32, i32, llvm::PointerType::get(context, 0)});
  auto* body =
      llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), parameters, false),
                             llvm::GlobalValue::InternalLinkage, entry.getName() + ".item", *entry.getParent());
  for (llvm::Argument& a : entry.args())
    for (auto kind : {llvm::Attribute::NoAlias, llvm::Attribute::ReadOnly})
      if (a.hasAttribute(kind)) body->addParamAttr(a.getArgNo(), kind);
  body->splice(body->begin(), &entry);
  for (llvm::Argument& a : entry.args()) a.replaceAllUsesWith(body->getArg(a.getArgNo()));
  body->setDoesNotThrow();
  body->addFnAttr(llvm::Attribute::Convergent);
  return body;
}

// Places workgroup variables in the workgroup's memory, with those of unknown size last. Returns the size of the memory
// in bytes.
std::uint64_t place_shared_memory(llvm::Function& body, const launch_site& launch) {
  llvm::Module& module = *body.getParent();
  const llvm::DataLayout& layout = module.getDataLayout();
  std::vector<llvm::GlobalVariable*> variables;
  for (llvm::GlobalVariable& v : module.globals())
    if (v.hasAttribute(workgroup_attribute)) variables.push_back(&v);
  std::vector<llvm::Constant*> constants(variables.begin(), variables.end());
  llvm::convertUsersOfConstantsToInstructions(constants, &body);
  auto used = [&](llvm::GlobalVariable* v) {
    return std::ranges::any_of(v->users(), [&](llvm::User* u) {
      auto* i = llvm::dyn_cast<llvm::Instruction>(u);
      return i && i->getFunction() == &body;
    });
  };
  builder b(&body.getEntryBlock(), body.getEntryBlock().getFirstInsertionPt());
  Value* shared = body.getArg(body.arg_size() - 1);
  std::uint64_t bytes = 0;
  auto place = [&](llvm::GlobalVariable* v) {
    Value* at = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), shared, bytes);
    v->replaceUsesWithIf(at, [&](llvm::Use& u) {
      auto* i = llvm::dyn_cast<llvm::Instruction>(u.getUser());
      return i && i->getFunction() == &body && i != at;
    });
  };
  for (bool open : {false, true}) {
    if (open) bytes = llvm::alignTo(bytes, 16);
    for (llvm::GlobalVariable* v : variables) {
      if (v->isDeclaration() != open || !used(v)) continue;
      if (!open)
        bytes = llvm::alignTo(bytes, std::max<std::uint64_t>(v->getAlign().valueOrOne().value(),
                                                             layout.getPrefTypeAlign(v->getValueType()).value()));
      place(v);
      if (!open) bytes += layout.getTypeAllocSize(v->getValueType());
    }
  }
  bytes += static_cast<std::uint64_t>(launch.shared_bytes);
  if (bytes > most_shared_bytes)
    throw error(error_kind::unsupported,
                fmt::format("kernel '{}' wants {} bytes of shared memory for each workgroup; the host gives {}",
                            launch.kernel, bytes, most_shared_bytes));
  return bytes;
}

// A workgroup is run by one thread, so fences with workgroup scope or less are removed.
void remove_inner_fences(llvm::Function& body) {
  llvm::LLVMContext& context = body.getContext();
  std::vector<llvm::Instruction*> removed;
  for (BasicBlock& block : body)
    for (llvm::Instruction& i : block) {
      auto* fence = llvm::dyn_cast<llvm::FenceInst>(&i);
      if (fence && (fence->getSyncScopeID() == context.getOrInsertSyncScopeID("workgroup") ||
                    fence->getSyncScopeID() == context.getOrInsertSyncScopeID("wavefront")))
        removed.push_back(fence);
      if (i.isLifetimeStartOrEnd()) removed.push_back(&i);
    }
  for (llvm::Instruction* i : removed) i->eraseFromParent();
}

bool has_variables(llvm::Function& function) {
  for (BasicBlock& block : function)
    for (llvm::Instruction& i : block)
      if (llvm::isa<llvm::AllocaInst>(i)) return true;
  return false;
}

// Between two synchronization points, the items of a workgroup may run in any order. Their memory accesses are put into
// this access group, which the loops over items refer to.
void put_in_access_group(llvm::Function& function, llvm::MDNode* group) {
  for (BasicBlock& block : function)
    for (llvm::Instruction& i : block)
      if (i.mayReadOrWriteMemory()) i.setMetadata(llvm::LLVMContext::MD_access_group, group);
}

// Emits void symbol(ptr buffers, i64 begin, i64 end), which runs workgroups [begin, end).
void make_driver(llvm::Module& module, const launch_site& launch, llvm::Function& body,
                 const std::function<void(builder&, std::vector<Value*>&, Value* shared)>& run_group,
                 std::uint64_t shared_bytes, const lowering_target& target) {
  llvm::LLVMContext& context = module.getContext();
  builder b(context);
  auto* driver = llvm::Function::Create(
      llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty()}, false),
      llvm::GlobalValue::ExternalLinkage, launch.symbol, module);
  driver->setDoesNotThrow();
  driver->addFnAttr("target-cpu", target.processor);
  if (!target.features.empty()) driver->addFnAttr("target-features", target.features);
  driver->addFnAttr("no-trapping-math", "true");
  b.SetInsertPoint(BasicBlock::Create(context, "", driver));
  llvm::AllocaInst* shared =
      b.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), std::max<std::uint64_t>(shared_bytes, 16)));
  shared->setAlignment(llvm::Align(64));
  std::vector<Value*> buffers;
  for (unsigned n = 0; n + 3 < body.arg_size(); ++n)
    buffers.push_back(b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), driver->getArg(0), n)));
  BasicBlock* start = BasicBlock::Create(context, "start", driver);  // the scheduler's variables are inserted before
  b.CreateBr(start);
  b.SetInsertPoint(start);
  loop(b, driver->getArg(1), driver->getArg(2), [&](Value* group) {
    std::vector<Value*> arguments = buffers;
    arguments.push_back(b.CreateTrunc(group, b.getInt32Ty()));
    run_group(b, arguments, shared);
  });
  b.CreateRetVoid();
}

void lower_entry(llvm::Module& module, const launch_site& launch, const lowering_target& target) {
  llvm::Function* entry = module.getFunction(launch.symbol);
  std::int64_t items = launch.block[0] * launch.block[1] * launch.block[2];
  llvm::Function* body = make_body(*entry);
  entry->eraseFromParent();
  unsigned item_parameter = static_cast<unsigned>(body->arg_size()) - 3;
  Value *item = body->getArg(item_parameter), *group = body->getArg(item_parameter + 1);
  Value* table = launch.table ? body->getArg(item_parameter - 1) : nullptr;
  builder first(&body->getEntryBlock(), body->getEntryBlock().getFirstInsertionPt());
  Value* lane = first.CreateAnd(item, host_wave - 1);
  for (CallInst* c : calls_of(*body)) {
    builder b(c);
    Value* result = index_replacement(b, *c, launch, target.wave, {item, group, table});
    if (!result) result = lane_replacement(b, *c, lane);
    if (!result) result = portable_replacement(b, *c);
    if (result) replace(*c, result);
  }
  if (items == 1) drop_synchronization(*body);
  remove_inner_fences(*body);
  std::uint64_t shared_bytes = place_shared_memory(*body, launch);
  guard_divisions(*body);
  simplify(*body);
  bool synchronizes = false;
  for (CallInst* c : calls_of(*body))
    synchronizes |= std::ranges::any_of(synchronization_names, [&](const synchronization_name& m) {
      return c->getCalledFunction()->getName() == m.name;
    });
  llvm::MDNode* accesses = llvm::MDNode::getDistinct(module.getContext(), {});
  Value* count = llvm::ConstantInt::get(llvm::Type::getInt32Ty(module.getContext()), static_cast<std::uint64_t>(items));
  if (!synchronizes) {
    body->addFnAttr(llvm::Attribute::AlwaysInline);
    bool parallel = !has_variables(*body);
    if (parallel) put_in_access_group(*body, accesses);
    make_driver(
        module, launch, *body,
        [&](builder& b, std::vector<Value*>& arguments, Value* shared) {
          loop(
              b, b.getInt32(0), count,
              [&](Value* n) {
                std::vector<Value*> all = arguments;
                all.insert(all.begin() + item_parameter, n);
                all.push_back(shared);
                b.CreateCall(body, all);
              },
              parallel ? accesses : nullptr);
        },
        shared_bytes, target);
    return;
  }
  region_set set = make_regions(*body, item_parameter, items);
  if (set.saved_bytes + shared_bytes > most_stack_bytes)
    throw error(error_kind::unsupported,
                fmt::format("kernel '{}' keeps {} bytes for the work items of a workgroup; the host gives {}",
                            launch.kernel, set.saved_bytes, most_stack_bytes));
  for (region& r : set.regions) put_in_access_group(*r.function, accesses);
  make_driver(
      module, launch, *body,
      [&](builder& b, std::vector<Value*>& arguments, Value* shared) {
        llvm::Function* driver = b.GetInsertBlock()->getParent();
        builder top(&driver->getEntryBlock(), driver->getEntryBlock().begin());
        llvm::AllocaInst* saved = top.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), set.saved_bytes));
        saved->setAlignment(llvm::Align(64));
        arguments.push_back(shared);
        arguments.push_back(saved);
        scheduler(b, set, arguments, item_parameter, items, accesses).run();
      },
      shared_bytes, target);
  body->eraseFromParent();
}

}  // namespace

void lower_host(llvm::Module& module, std::span<const launch_site> launches, const lowering_target& target) {
  for (const launch_site& launch : launches) lower_entry(module, launch, target);
  std::vector<llvm::GlobalVariable*> shared;
  for (llvm::GlobalVariable& v : module.globals())
    if (v.hasAttribute(workgroup_attribute) && v.use_empty()) shared.push_back(&v);
  for (llvm::GlobalVariable* v : shared) v->eraseFromParent();
  refuse_leftovers(module, machine_kind::host);
}

}  // namespace kiln::spirv
