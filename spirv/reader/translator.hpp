// The state of the translation of one module: maps ids to their translations. Internal to spirv/reader; one object per
// module, one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "spirv/reader/binary.hpp"
#include "spirv/reader/opcodes.hpp"
#include "spirv/reader/reader.hpp"

namespace kiln::spirv {

struct type_info {
  llvm::Type* type = nullptr;
  std::uint32_t element = 0;                                // for a pointer, vector or array; result type of a function
  std::vector<std::uint32_t> members;                       // of a struct; parameter types of a function
  spv::StorageClass storage = spv::StorageClass::Function;  // for a pointer
  spv::Op kind = spv::Op::OpNop;                            // the instruction that declared it
};

struct decoration {
  spv::Decoration kind;
  std::vector<std::uint32_t> words;
};

// True if both are scalars, or both are vectors of the same length.
inline bool same_lanes(llvm::Type* a, llvm::Type* b) {
  auto *x = llvm::dyn_cast<llvm::FixedVectorType>(a), *y = llvm::dyn_cast<llvm::FixedVectorType>(b);
  return x && y ? x->getNumElements() == y->getNumElements() : !x && !y;
}

class translator {
 public:
  translator(const binary& source, llvm::Module& module, const read_options& options);
  void run();

 private:
  using words = std::span<const std::uint32_t>;

  // translator.cpp: declarations, and helpers for all parts
  void declare(const instruction_words& i);
  void declare_type(const instruction_words& i);
  void declare_constant(const instruction_words& i);
  void declare_number(const instruction_words& i, llvm::Type* t);
  void declare_composite(const instruction_words& i, llvm::Type* t);
  void declare_folded(const instruction_words& i);
  void declare_variable(const instruction_words& i);
  unsigned space_of(spv::StorageClass storage) const;
  const type_info& type(std::uint32_t id) const;
  llvm::Type* llvm_type(std::uint32_t id) const { return type(id).type; }
  llvm::Value* value(std::uint32_t id) const;
  std::uint64_t integer_constant(std::uint32_t id) const;
  void define(const instruction_words& i, llvm::Value* v);
  const decoration* find(std::uint32_t id, spv::Decoration kind) const;
  std::string name_of(std::uint32_t id) const;
  // Throws error{corrupted} with the name of the instruction unless `holds`.
  void require(bool holds, const instruction_words& i, const char* what = "its operands do not fit its result") const;
  [[noreturn]] void refuse(const std::string& what) const;

  // functions.cpp
  void declare_function(std::size_t at);
  void emit_function(std::size_t at);
  void emit_control(const instruction_words& i);
  void emit_phis();
  llvm::BasicBlock* block(std::uint32_t id) const;
  void refuse_recursion() const;
  void emit_call(const instruction_words& i);

  // instructions.cpp: emit() calls the emit_ functions below until one accepts the instruction
  void emit(const instruction_words& i);
  llvm::Value* integer_operand(std::uint32_t id, const instruction_words& i) const;
  std::uint32_t type_of(std::uint32_t id) const;

  // arithmetic.cpp
  bool emit_arithmetic(const instruction_words& i);
  void set_fast_math_flags(const instruction_words& i);
  llvm::Value* float_operand(std::size_t k, const instruction_words& i) const;
  llvm::Value* binary_operation(llvm::Instruction::BinaryOps operation, const instruction_words& i);
  llvm::Value* comparison(llvm::CmpInst::Predicate predicate, const instruction_words& i);
  llvm::Value* floored_remainder(const instruction_words& i);
  llvm::Value* dot_product(const instruction_words& i);
  llvm::Value* sum_with_carry(const instruction_words& i);
  llvm::Value* sign_bit(const instruction_words& i);

  // conversions.cpp
  bool emit_conversion(const instruction_words& i);
  llvm::Value* float_to_integer(llvm::Value* x, llvm::Type* to, const instruction_words& i);
  llvm::Value* integer_to_pointer(llvm::Value* x, llvm::Type* to);
  llvm::Value* bit_cast(llvm::Value* x, llvm::Type* to, const instruction_words& i);
  llvm::Value* in_space_of(llvm::Value* pointer, llvm::Type* to);
  llvm::Value* rounded(llvm::Value* x, const instruction_words& i);

  // composites.cpp
  bool emit_composite(const instruction_words& i);
  llvm::Type* type_inside(llvm::Type* t, words path, const instruction_words& i) const;
  llvm::Value* construct_vector(llvm::FixedVectorType* vector, const instruction_words& i);
  llvm::Value* construct_aggregate(llvm::Type* t, const instruction_words& i);
  llvm::Value* shuffle(const instruction_words& i);

  // memory.cpp
  bool emit_memory(const instruction_words& i);
  void emit_access_chain(const instruction_words& i);
  llvm::Value* check_pointer(std::uint32_t id, const instruction_words& i) const;

  // atomics.cpp
  bool emit_atomic(const instruction_words& i);
  llvm::Value* compare_exchange(const instruction_words& i);
  void emit_barrier(const instruction_words& i);
  llvm::SyncScope::ID scope(std::uint32_t id) const;
  llvm::AtomicOrdering ordering(std::uint32_t id) const;

  // intrinsics.cpp
  llvm::Function* import_function(const std::string& name, llvm::FunctionType* type);
  bool emit_group(const instruction_words& i);
  bool emit_extended(const instruction_words& i);
  llvm::Value* call(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Type*> overloads,
                    llvm::ArrayRef<llvm::Value*> operands);
  llvm::Value* lane();
  llvm::Value* from_lane(llvm::Value* v, llvm::Value* from);

  const binary& source_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const read_options& options_;
  llvm::IRBuilder<> b_;
  std::map<std::uint32_t, type_info> types_;
  std::vector<llvm::Value*> values_;       // by id
  std::vector<std::uint32_t> type_of_;     // by id: the id of its type
  std::vector<llvm::BasicBlock*> blocks_;  // by id, for the function being emitted
  std::map<std::uint32_t, std::string> names_;
  std::multimap<std::uint32_t, decoration> decorations_;
  std::map<std::uint32_t, std::string> entry_points_;
  std::map<std::uint32_t, std::string> extended_sets_;
  std::map<std::uint32_t, spv::BuiltIn> builtins_;
  std::map<llvm::Function*, std::set<llvm::Function*>> calls_;
  llvm::Function* function_ = nullptr;  // the function being emitted
  std::vector<std::pair<llvm::PHINode*, const instruction_words*>> phis_;
  std::uint64_t local_bytes_ = 0;  // total size of the function's variables
};

}  // namespace kiln::spirv
