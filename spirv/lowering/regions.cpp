#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/error.hpp"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include "spirv/lowering/work_items.hpp"

namespace kiln::spirv {
namespace {

using llvm::BasicBlock;
using llvm::CallInst;
using llvm::Instruction;
using llvm::Value;

std::optional<synchronization> synchronization_of(const Instruction& i) {
  const auto* call = llvm::dyn_cast<CallInst>(&i);
  if (!call || !call->getCalledFunction()) return std::nullopt;
  for (const synchronization_name& row : synchronization_names)
    if (call->getCalledFunction()->getName() == row.name) return row.kind;
  return std::nullopt;
}

struct point {
  CallInst* call;
  BasicBlock* block;  // begins with the call
  synchronization kind;
};

// Splits blocks so that each synchronization point begins a block. Returns the points in code order.
std::vector<point> split_at_synchronization(llvm::Function& body) {
  std::vector<CallInst*> calls;
  for (BasicBlock& block : body)
    for (Instruction& i : block)
      if (synchronization_of(i)) calls.push_back(llvm::cast<CallInst>(&i));
  for (CallInst* call : calls) llvm::SplitBlock(call->getParent(), call);
  std::vector<point> points;
  llvm::ReversePostOrderTraversal<llvm::Function*> order(&body);
  for (BasicBlock* block : order)
    if (auto kind = synchronization_of(block->front()))
      points.push_back({llvm::cast<CallInst>(&block->front()), block, *kind});
  return points;
}

using value_set = std::set<Instruction*>;

// Values that are live at the beginning of each block.
std::map<BasicBlock*, value_set> live_values(llvm::Function& body) {
  std::map<BasicBlock*, value_set> live, used, defined;
  auto is_value = [](Value* v) { return llvm::isa<Instruction>(v) && !llvm::isa<llvm::AllocaInst>(v); };
  for (BasicBlock& block : body) {
    for (Instruction& i : block) {
      if (!llvm::isa<llvm::PHINode>(i))
        for (Value* operand : i.operands())
          if (is_value(operand) && !defined[&block].contains(llvm::cast<Instruction>(operand)))
            used[&block].insert(llvm::cast<Instruction>(operand));
      defined[&block].insert(&i);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (BasicBlock* block : llvm::post_order(&body)) {
      value_set now = used[block];
      for (BasicBlock* next : llvm::successors(block)) {
        for (Instruction* v : live[next])
          if (!defined[block].contains(v)) now.insert(v);
        for (llvm::PHINode& phi : next->phis())
          if (Value* v = phi.getIncomingValueForBlock(block);
              is_value(v) && !defined[block].contains(llvm::cast<Instruction>(v)))
            now.insert(llvm::cast<Instruction>(v));
      }
      if (now.size() != live[block].size()) {
        live[block] = std::move(now);
        changed = true;
      }
    }
  }
  return live;
}

// Layout of the memory for saved values: consecutive arrays with one element per item.
class saved_layout {
 public:
  saved_layout(const llvm::DataLayout& layout, std::int64_t items) : layout_(layout), items_(items) {}

  std::uint64_t add(llvm::Type* type, llvm::Align alignment) {
    constexpr std::uint64_t line = 64;
    std::uint64_t stride = llvm::alignTo(layout_.getTypeAllocSize(type), alignment.value());
    std::uint64_t at = llvm::alignTo(bytes_, std::max<std::uint64_t>(line, alignment.value()));
    bytes_ = at + stride * static_cast<std::uint64_t>(items_);
    return at;
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const llvm::DataLayout& layout_;
  std::int64_t items_;
  std::uint64_t bytes_ = 0;
};

struct slot {
  llvm::AllocaInst* variable;  // in the body
  std::uint64_t at = 0;
  std::set<std::size_t> needed_at;  // indices of points
};

class region_maker {
 public:
  region_maker(llvm::Function& body, unsigned item_parameter, std::int64_t items)
      : body_(body),
        item_parameter_(item_parameter),
        layout_(body.getParent()->getDataLayout()),
        saved_(layout_, items),
        i32_(llvm::Type::getInt32Ty(body.getContext())) {}

  region_set run() {
    points_ = split_at_synchronization(body_);
    demote_crossing_values();
    for (BasicBlock& block : body_)
      for (Instruction& i : block)
        if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&i); variable && !is_slot(variable)) {
          if (!llvm::isa<llvm::ConstantInt>(variable->getArraySize()))
            throw error(error_kind::unsupported, "SPIR-V: a variable whose size is not known");
          llvm::Type* type = variable->getAllocatedType();
          if (variable->isArrayAllocation())
            type = llvm::ArrayType::get(type, llvm::cast<llvm::ConstantInt>(variable->getArraySize())->getZExtValue());
          variables_.push_back({variable, saved_.add(type, variable->getAlign()), {}});
          strides_[variable] = llvm::alignTo(layout_.getTypeAllocSize(type), variable->getAlign().value());
        }
    region_set result;
    for (std::uint64_t* at : {&result.standing_at, &result.value_at, &result.lane_at, &result.result_at})
      *at = saved_.add(i32_, llvm::Align(4));
    set_ = &result;
    for (slot& s : slots_)
      s.at = saved_.add(s.variable->getAllocatedType(), layout_.getPrefTypeAlign(s.variable->getAllocatedType()));
    result.saved_bytes = llvm::alignTo(saved_.bytes(), 64);
    for (std::size_t k = 0; k <= points_.size(); ++k) {
      result.regions.push_back({make_region(k), k ? points_[k - 1].kind : synchronization::barrier});
      if (k && points_[k - 1].kind != synchronization::barrier) result.between_lanes = true;
    }
    return result;
  }

 private:
  bool is_slot(llvm::AllocaInst* a) const { return std::ranges::find(slots_, a, &slot::variable) != slots_.end(); }

  void demote_crossing_values() {
    auto live = live_values(body_);
    std::map<Instruction*, std::set<std::size_t>> crossing;
    for (std::size_t k = 0; k < points_.size(); ++k)
      for (Instruction* v : live[points_[k].block]) crossing[v].insert(k);
    // Sort by code order, so that the same kernel gives the same bytes.
    std::vector<Instruction*> order;
    for (BasicBlock& block : body_)
      for (Instruction& i : block)
        if (crossing.contains(&i)) order.push_back(&i);
    auto at = body_.getEntryBlock().begin();
    for (Instruction* v : order) slots_.push_back({llvm::DemoteRegToStack(*v, false, at), 0, crossing[v]});
  }

  // A region while it is made: its function, and where the memory of the body's values is in it.
  struct new_region {
    llvm::Function* function = nullptr;
    BasicBlock* begin = nullptr;
    Value *index = nullptr, *saved = nullptr;  // number of the item; memory for saved values
    llvm::ValueToValueMapTy map;               // value of the body → value of the region

    BasicBlock* copy_of(BasicBlock* block) { return llvm::cast<BasicBlock>(static_cast<Value*>(map[block])); }
    CallInst* copy_of(CallInst* call) { return llvm::cast<CallInst>(static_cast<Value*>(map[call])); }
  };

  // Makes the region that begins at point k - 1, or at the kernel's entry if k is 0.
  llvm::Function* make_region(std::size_t k) {
    new_region r;
    declare(r, k);
    llvm::IRBuilder<> b(r.begin);
    r.index = b.CreateZExt(r.function->getArg(item_parameter_), b.getInt64Ty());
    map_variables(r, b);
    if (k > 0)
      for (slot& s : slots_)
        if (s.needed_at.contains(k - 1))
          b.CreateStore(b.CreateLoad(s.variable->getAllocatedType(), slot_element(r, b, s)), r.map[s.variable]);
    copy_body(r);
    for (std::size_t j = 0; j < points_.size(); ++j) leave_at(r, j);
    enter(r, b, k);
    finish_items(*r.function);
    llvm::removeUnreachableBlocks(*r.function);
    r.function->setDoesNotThrow();
    r.function->addFnAttr(llvm::Attribute::AlwaysInline);
    return r.function;
  }

  // The parameters are the body's and the memory for saved values.
  void declare(new_region& r, std::size_t k) {
    std::vector<llvm::Type*> parameters(body_.getFunctionType()->params());
    parameters.push_back(llvm::PointerType::get(body_.getContext(), 0));
    r.function =
        llvm::Function::Create(llvm::FunctionType::get(i32_, parameters, false), llvm::GlobalValue::InternalLinkage,
                               body_.getName() + ".region." + std::to_string(k), *body_.getParent());
    for (llvm::Argument& a : body_.args()) r.map[&a] = r.function->getArg(a.getArgNo());
    r.saved = r.function->getArg(r.function->arg_size() - 1);
    r.begin = BasicBlock::Create(body_.getContext(), "begin", r.function);
  }

  // Returns the address of the item's element of an array in the memory for saved values.
  Value* element(const new_region& r, llvm::IRBuilder<>& b, std::uint64_t at, std::uint64_t stride) const {
    return b.CreateGEP(b.getInt8Ty(), r.saved, {b.CreateAdd(b.CreateMul(r.index, b.getInt64(stride)), b.getInt64(at))});
  }
  Value* slot_element(const new_region& r, llvm::IRBuilder<>& b, const slot& s) const {
    llvm::Type* type = s.variable->getAllocatedType();
    return element(r, b, s.at, llvm::alignTo(layout_.getTypeAllocSize(type), layout_.getPrefTypeAlign(type).value()));
  }

  // Slots are local variables of a region; SROA promotes them to registers. Other variables lie in the memory for saved
  // values.
  void map_variables(new_region& r, llvm::IRBuilder<>& b) {
    for (slot& s : slots_) r.map[s.variable] = b.CreateAlloca(s.variable->getAllocatedType());
    for (slot& s : variables_) r.map[s.variable] = element(r, b, s.at, strides_[s.variable]);
  }

  void copy_body(new_region& r) {
    for (BasicBlock& block : body_) {
      BasicBlock* copy = BasicBlock::Create(body_.getContext(), "", r.function);
      r.map[&block] = copy;
      for (Instruction& i : block) {
        if (auto* a = llvm::dyn_cast<llvm::AllocaInst>(&i); a && r.map.count(a)) continue;
        Instruction* clone = i.clone();
        clone->insertInto(copy, copy->end());
        r.map[&i] = clone;
      }
    }
    for (BasicBlock& block : *r.function)
      if (&block != r.begin)
        for (Instruction& i : block)
          llvm::RemapInstruction(&i, r.map, llvm::RF_IgnoreMissingLocals | llvm::RF_NoModuleLevelChanges);
  }

  // Branches to point j leave the region: they store the operands of the exchange and the values that are needed later.
  void leave_at(new_region& r, std::size_t j) {
    BasicBlock* target = r.copy_of(points_[j].block);
    BasicBlock* leave = BasicBlock::Create(body_.getContext(), "leave", r.function);
    llvm::IRBuilder<> out(leave);
    CallInst* call = r.copy_of(points_[j].call);
    std::uint64_t operand_at[] = {set_->value_at, set_->lane_at};
    for (unsigned n = 0; n < call->arg_size(); ++n) {
      Value* operand = call->getArgOperand(n);
      // If the operand is loaded from its slot right before the call, repeat the load here.
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(operand); load && load->getParent() == target)
        operand = out.CreateLoad(load->getType(), load->getPointerOperand());
      Value* word = out.CreateZExt(operand, i32_);
      out.CreateStore(word, element(r, out, operand_at[n], 4));
    }
    for (slot& s : slots_)
      if (s.needed_at.contains(j)) {
        Value* kept = out.CreateLoad(s.variable->getAllocatedType(), r.map[s.variable]);
        out.CreateStore(kept, slot_element(r, out, s));
      }
    out.CreateRet(
        out.getInt32(static_cast<std::uint32_t>(j + 1) | (points_[j].kind == synchronization::barrier ? waits : 0)));
    target->replaceUsesWithIf(leave, [](llvm::Use&) { return true; });  // replaces the target of branches only
  }

  // Ends the block `begin` with a branch to the kernel's entry, or to what follows point k - 1, whose result is loaded.
  void enter(new_region& r, llvm::IRBuilder<>& b, std::size_t k) {
    if (k == 0) {
      b.CreateBr(r.copy_of(&body_.getEntryBlock()));
      return;
    }
    CallInst* call = r.copy_of(points_[k - 1].call);
    if (!call->getType()->isVoidTy()) {
      llvm::IRBuilder<> at(call);
      call->replaceAllUsesWith(at.CreateLoad(i32_, element(r, at, set_->result_at, 4)));
    }
    b.CreateBr(call->getParent());
    call->eraseFromParent();
  }

  // Returns of the body, which have no value, become returns of `finished`.
  void finish_items(llvm::Function& function) {
    for (BasicBlock& block : function)
      if (auto* end = llvm::dyn_cast<llvm::ReturnInst>(block.getTerminator()); end && !end->getReturnValue()) {
        llvm::ReturnInst::Create(body_.getContext(), llvm::ConstantInt::get(i32_, finished), end->getIterator());
        end->eraseFromParent();
      }
  }

  llvm::Function& body_;
  unsigned item_parameter_;
  const llvm::DataLayout& layout_;
  saved_layout saved_;
  llvm::Type* i32_;
  region_set* set_ = nullptr;
  std::vector<point> points_;
  std::vector<slot> slots_, variables_;
  std::map<llvm::AllocaInst*, std::uint64_t> strides_;
};

}  // namespace

region_set make_regions(llvm::Function& body, unsigned item_parameter, std::int64_t items) {
  return region_maker(body, item_parameter, items).run();
}

}  // namespace kiln::spirv
