// Entries for the host: an entry runs a range of workgroups, one after another. Without synchronization points the
// items of a workgroup are a single loop that LLVM may vectorize; otherwise regions of items are scheduled
// (work_items.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/error.hpp"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
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
#include "spirv/lowering/lowering.hpp"
#include "spirv/lowering/work_items.hpp"
#include "spirv/reader/reader.hpp"

namespace kiln::spirv {
namespace {

using llvm::BasicBlock;
using llvm::CallInst;
using llvm::Value;
using builder = llvm::IRBuilder<>;
namespace intrinsic = llvm::Intrinsic;

// Limit on the stack of the thread that runs a workgroup.
constexpr std::uint64_t most_stack_bytes = 4 << 20;
constexpr std::uint64_t most_shared_bytes = 256 << 10;

// ---- amdgcn's cross-lane operations as synchronization points ----

llvm::Function* meeting_function(llvm::Module& module, meeting kind, llvm::Type* result,
                                 llvm::ArrayRef<llvm::Type*> parameters) {
  const char* name = std::ranges::find(meeting_names, kind, &meeting_name::kind)->name;
  auto* function = llvm::cast<llvm::Function>(
      module.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false)).getCallee());
  function->setDoesNotThrow();
  function->addFnAttr(llvm::Attribute::Convergent);
  function->addFnAttr(llvm::Attribute::NoDuplicate);
  return function;
}

Value* meet(builder& b, meeting kind, llvm::ArrayRef<Value*> operands = {}) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  llvm::Type* result = kind == meeting::shuffle || kind == meeting::ballot ? b.getInt32Ty() : b.getVoidTy();
  auto* call = b.CreateCall(meeting_function(*b.GetInsertBlock()->getModule(), kind, result, types), operands);
  call->setConvergent();
  return call;
}

Value* from_lane(builder& b, Value* v, Value* from) {
  llvm::Type* t = v->getType();
  auto bits = static_cast<unsigned>(t->getPrimitiveSizeInBits());
  if (!bits) throw error(error_kind::unsupported, "a lane exchange of a value that is not a number is not supported");
  unsigned count = (bits + 31) / 32;
  Value *all = b.CreateZExt(b.CreateBitCast(v, b.getIntNTy(bits)), b.getIntNTy(count * 32)),
        *result = b.getIntN(count * 32, 0);
  for (unsigned k = 0; k < count; ++k) {
    Value* word = meet(b, meeting::shuffle, {b.CreateTrunc(b.CreateLShr(all, k * 32), b.getInt32Ty()), from});
    result = b.CreateOr(result, b.CreateShl(b.CreateZExt(word, result->getType()), k * 32));
  }
  return b.CreateBitCast(b.CreateTrunc(result, b.getIntNTy(bits)), t);
}

// Returns null for any other call. `lane` is i32.
Value* lane_replacement(builder& b, CallInst& c, Value* lane) {
  switch (c.getIntrinsicID()) {
    case intrinsic::amdgcn_s_barrier: return meet(b, meeting::barrier);
    case intrinsic::amdgcn_wave_barrier: return meet(b, meeting::wave_barrier);
    case intrinsic::amdgcn_mbcnt_lo: {
      if (auto* all = llvm::dyn_cast<llvm::ConstantInt>(c.getArgOperand(0)); all && all->isMinusOne())
        return b.CreateAdd(lane, c.getArgOperand(1));
      Value* below = b.CreateSub(b.CreateShl(b.getInt32(1), lane), b.getInt32(1));
      return b.CreateAdd(b.CreateUnaryIntrinsic(intrinsic::ctpop, b.CreateAnd(c.getArgOperand(0), below)),
                         c.getArgOperand(1));
    }
    case intrinsic::amdgcn_mbcnt_hi: return c.getArgOperand(1);
    case intrinsic::amdgcn_ds_bpermute:
      return meet(b, meeting::shuffle, {c.getArgOperand(1), b.CreateLShr(c.getArgOperand(0), 2)});
    case intrinsic::amdgcn_readlane: return from_lane(b, c.getArgOperand(0), c.getArgOperand(1));
    case intrinsic::amdgcn_readfirstlane:
      return from_lane(
          b, c.getArgOperand(0),
          b.CreateIntrinsic(b.getInt32Ty(), intrinsic::cttz, {meet(b, meeting::ballot, {b.getTrue()}), b.getTrue()}));
    case intrinsic::amdgcn_ballot:
      return b.CreateZExtOrTrunc(meet(b, meeting::ballot, {c.getArgOperand(0)}), c.getType());
    default: return nullptr;
  }
}

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

// ---- loops ----

// Emits for (i32 n = from; n < to; ++n) body(n) at the end of the builder's block. The builder continues after the
// loop. `parallel` is an access group or null.
void loop(builder& b, Value* from, Value* to, const std::function<void(Value*)>& body,
          llvm::MDNode* parallel = nullptr) {
  llvm::LLVMContext& context = b.getContext();
  llvm::Function* function = b.GetInsertBlock()->getParent();
  BasicBlock *before = b.GetInsertBlock(), *inside = BasicBlock::Create(context, "loop", function),
             *after = BasicBlock::Create(context, "after", function);
  b.CreateCondBr(b.CreateICmpSLT(from, to), inside, after);
  b.SetInsertPoint(inside);
  llvm::PHINode* n = b.CreatePHI(from->getType(), 2);
  n->addIncoming(from, before);
  body(n);
  Value* next = b.CreateNSWAdd(n, llvm::ConstantInt::get(n->getType(), 1));
  n->addIncoming(next, b.GetInsertBlock());
  llvm::BranchInst* back = b.CreateCondBr(b.CreateICmpSLT(next, to), inside, after);
  if (parallel) {
    llvm::Metadata* accesses[] = {llvm::MDString::get(context, "llvm.loop.parallel_accesses"), parallel};
    llvm::Metadata* facts[] = {nullptr, llvm::MDNode::get(context, accesses)};
    llvm::MDNode* id = llvm::MDNode::getDistinct(context, facts);
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  b.SetInsertPoint(after);
}

void when(builder& b, Value* condition, const std::function<void()>& then) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  BasicBlock *yes = BasicBlock::Create(b.getContext(), "then", function),
             *after = BasicBlock::Create(b.getContext(), "after", function);
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

// ---- the scheduler ----

class scheduler {
 public:
  // Emits into `b` the code that runs one workgroup. `arguments` are those of a region without the item, which is the
  // parameter `item_parameter`.
  scheduler(builder& b, const region_set& set, std::vector<Value*> arguments, unsigned item_parameter,
            std::int64_t items, llvm::MDNode* group)
      : b_(b),
        set_(set),
        arguments_(std::move(arguments)),
        item_parameter_(item_parameter),
        items_(static_cast<std::uint32_t>(items)),
        group_(group),
        saved_(arguments_.back()) {}

  void run() {
    std::uint32_t width = set_.between_lanes ? host_wave : items_;
    Value* items = b_.getInt32(items_);
    loop(b_, b_.getInt32(0), items, [&](Value* n) { b_.CreateStore(b_.getInt32(0), element(set_.standing_at, n)); });
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    BasicBlock *round = BasicBlock::Create(b_.getContext(), "round", function),
               *done = BasicBlock::Create(b_.getContext(), "done", function);
    b_.CreateBr(round);
    b_.SetInsertPoint(round);
    loop(b_, b_.getInt32(0), b_.getInt32((items_ + width - 1) / width), [&](Value* wave) {
      Value* first = b_.CreateNSWMul(wave, b_.getInt32(width));
      run_wave(first, b_.CreateBinaryIntrinsic(intrinsic::smin, b_.CreateNSWAdd(first, b_.getInt32(width)), items));
    });
    // At this point every item is at a barrier or has finished. Release the items at the barrier.
    llvm::AllocaInst* going = variable();
    b_.CreateStore(b_.getInt32(0), going);
    loop(b_, b_.getInt32(0), items, [&](Value* n) {
      Value *place = element(set_.standing_at, n), *standing = b_.CreateLoad(b_.getInt32Ty(), place);
      Value* ended = b_.CreateICmpEQ(standing, b_.getInt32(finished));
      b_.CreateStore(b_.CreateSelect(ended, standing, b_.CreateAnd(standing, b_.getInt32(~waits))), place);
      b_.CreateStore(
          b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), going), b_.CreateZExt(b_.CreateNot(ended), b_.getInt32Ty())),
          going);
    });
    b_.CreateCondBr(b_.CreateICmpNE(b_.CreateLoad(b_.getInt32Ty(), going), b_.getInt32(0)), round, done);
    b_.SetInsertPoint(done);
  }

 private:
  Value* element(std::uint64_t at, Value* n) {
    return b_.CreateGEP(b_.getInt32Ty(), b_.CreateConstGEP1_64(b_.getInt8Ty(), saved_, at),
                        {b_.CreateZExt(n, b_.getInt64Ty())});
  }
  Value* load(std::uint64_t at, Value* n) { return b_.CreateLoad(b_.getInt32Ty(), element(at, n)); }
  llvm::AllocaInst* variable() {
    builder first(&b_.GetInsertBlock()->getParent()->getEntryBlock(),
                  b_.GetInsertBlock()->getParent()->getEntryBlock().begin());
    return first.CreateAlloca(first.getInt32Ty());
  }

  // Runs items [first, last) until each is at a barrier or has finished. Items at the earliest region run together.
  void run_wave(Value* first, Value* last) {
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    BasicBlock *choose = BasicBlock::Create(b_.getContext(), "choose", function),
               *leave = BasicBlock::Create(b_.getContext(), "leave", function);
    llvm::AllocaInst *earliest = variable(), *together = variable();
    b_.CreateBr(choose);
    b_.SetInsertPoint(choose);
    b_.CreateStore(b_.getInt32(finished), earliest);
    loop(b_, first, last, [&](Value* n) {
      b_.CreateStore(b_.CreateBinaryIntrinsic(intrinsic::umin, b_.CreateLoad(b_.getInt32Ty(), earliest),
                                              load(set_.standing_at, n)),
                     earliest);
    });
    Value* region = b_.CreateLoad(b_.getInt32Ty(), earliest);
    b_.CreateStore(b_.getInt32(0), together);
    loop(b_, first, last, [&](Value* n) {
      Value* here = b_.CreateZExt(b_.CreateICmpEQ(load(set_.standing_at, n), region), b_.getInt32Ty());
      b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt32Ty(), together), here), together);
    });
    Value* all = b_.CreateICmpEQ(b_.CreateLoad(b_.getInt32Ty(), together), b_.CreateSub(last, first));
    llvm::SwitchInst* jump = b_.CreateSwitch(region, leave, static_cast<unsigned>(set_.regions.size()));
    for (std::size_t k = 0; k < set_.regions.size(); ++k) {
      BasicBlock* run = BasicBlock::Create(b_.getContext(), "region", function);
      jump->addCase(b_.getInt32(static_cast<std::uint32_t>(k)), run);
      b_.SetInsertPoint(run);
      if (k) exchange(set_.regions[k].begin, static_cast<std::uint32_t>(k), first, last);
      run_region(set_.regions[k], static_cast<std::uint32_t>(k), first, last, all);
      b_.CreateBr(choose);
    }
    b_.SetInsertPoint(leave);
  }

  // Exchanges values between the lanes that are at region `k`.
  void exchange(meeting kind, std::uint32_t k, Value* first, Value* last) {
    auto stands_here = [&](Value* n) { return b_.CreateICmpEQ(load(set_.standing_at, n), b_.getInt32(k)); };
    if (kind == meeting::ballot) {
      llvm::AllocaInst* mask = variable();
      b_.CreateStore(b_.getInt32(0), mask);
      loop(b_, first, last, [&](Value* n) {
        Value* bit = b_.CreateShl(b_.CreateAnd(load(set_.value_at, n), b_.getInt32(1)), b_.CreateSub(n, first));
        Value* known = b_.CreateLoad(b_.getInt32Ty(), mask);
        b_.CreateStore(b_.CreateSelect(stands_here(n), b_.CreateOr(known, bit), known), mask);
      });
      Value* result = b_.CreateLoad(b_.getInt32Ty(), mask);
      loop(b_, first, last, [&](Value* n) {
        Value* place = element(set_.result_at, n);
        b_.CreateStore(b_.CreateSelect(stands_here(n), result, b_.CreateLoad(b_.getInt32Ty(), place)), place);
      });
    } else if (kind == meeting::shuffle) {
      // Reading from a lane that is not active gives 0.
      loop(b_, first, last, [&](Value* n) {
        Value* from = b_.CreateAdd(first, b_.CreateAnd(load(set_.lane_at, n), b_.getInt32(host_wave - 1)));
        Value* exists = b_.CreateICmpSLT(from, last);
        from = b_.CreateSelect(exists, from, first);
        Value* given =
            b_.CreateSelect(b_.CreateAnd(exists, stands_here(from)), load(set_.value_at, from), b_.getInt32(0));
        Value* place = element(set_.result_at, n);
        b_.CreateStore(b_.CreateSelect(stands_here(n), given, b_.CreateLoad(b_.getInt32Ty(), place)), place);
      });
    }
  }

  void run_region(const region& r, std::uint32_t k, Value* first, Value* last, Value* all) {
    auto one = [&](Value* n) {
      std::vector<Value*> arguments = arguments_;
      arguments.insert(arguments.begin() + item_parameter_, n);
      llvm::StoreInst* store = b_.CreateStore(b_.CreateCall(r.function, arguments), element(set_.standing_at, n));
      store->setMetadata(llvm::LLVMContext::MD_access_group, group_);
    };
    llvm::Function* function = b_.GetInsertBlock()->getParent();
    BasicBlock *some = BasicBlock::Create(b_.getContext(), "some", function),
               *every = BasicBlock::Create(b_.getContext(), "every", function),
               *after = BasicBlock::Create(b_.getContext(), "after", function);
    b_.CreateCondBr(all, every, some);
    b_.SetInsertPoint(every);
    loop(b_, first, last, one, group_);
    b_.CreateBr(after);
    b_.SetInsertPoint(some);
    loop(b_, first, last,
         [&](Value* n) { when(b_, b_.CreateICmpEQ(load(set_.standing_at, n), b_.getInt32(k)), [&] { one(n); }); });
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  builder& b_;
  const region_set& set_;
  std::vector<Value*> arguments_;
  unsigned item_parameter_;
  std::uint32_t items_;
  llvm::MDNode* group_;
  Value* saved_;
};

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
  builder first(&body->getEntryBlock(), body->getEntryBlock().getFirstInsertionPt());
  Value* lane = first.CreateAnd(item, host_wave - 1);
  for (CallInst* c : calls_of(*body)) {
    builder b(c);
    Value* result = index_replacement(b, *c, launch, target.wave, {item, group});
    if (!result) result = lane_replacement(b, *c, lane);
    if (!result) result = portable_replacement(b, *c);
    if (result) replace(*c, result);
  }
  remove_inner_fences(*body);
  std::uint64_t shared_bytes = place_shared_memory(*body, launch);
  guard_divisions(*body);
  simplify(*body);
  bool meets = false;
  for (CallInst* c : calls_of(*body))
    meets |= std::ranges::any_of(meeting_names,
                                 [&](const meeting_name& m) { return c->getCalledFunction()->getName() == m.name; });
  llvm::MDNode* accesses = llvm::MDNode::getDistinct(module.getContext(), {});
  Value* count = llvm::ConstantInt::get(llvm::Type::getInt32Ty(module.getContext()), static_cast<std::uint64_t>(items));
  if (!meets) {
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
