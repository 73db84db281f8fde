// Vectors, structs and arrays: construction, extraction, insertion.
#include <algorithm>
#include <array>

#include "spirv/reader/translator.hpp"

namespace kiln::spirv {

using spv::Op;

// Returns the type inside of `t` at the literal indices.
llvm::Type* translator::type_inside(llvm::Type* t, words path, const instruction_words& i) const {
  for (std::uint32_t k : path) {
    if (auto* record = llvm::dyn_cast<llvm::StructType>(t)) {
      require(k < record->getNumElements(), i, "an index out of range");
      t = record->getElementType(k);
    } else if (auto* array = llvm::dyn_cast<llvm::ArrayType>(t)) {
      require(k < array->getNumElements(), i, "an index out of range");
      t = array->getElementType();
    } else {
      auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(t);
      require(vector && k < vector->getNumElements(), i, "an index out of range");
      t = vector->getElementType();
    }
  }
  return t;
}

// Parts of a vector may be vectors themselves, whose elements follow one another.
llvm::Value* translator::construct_vector(llvm::FixedVectorType* vector, const instruction_words& i) {
  llvm::Value* result = llvm::PoisonValue::get(vector);
  unsigned at = 0;
  auto add = [&](llvm::Value* v) {
    require(at < vector->getNumElements() && v->getType() == vector->getElementType(), i);
    result = b_.CreateInsertElement(result, v, at++);
  };
  for (std::uint32_t id : i.operands) {
    llvm::Value* part = value(id);
    if (auto* several = llvm::dyn_cast<llvm::FixedVectorType>(part->getType()))
      for (unsigned k = 0; k < several->getNumElements(); ++k) add(b_.CreateExtractElement(part, k));
    else add(part);
  }
  require(at == vector->getNumElements(), i, "its number of parts is wrong");
  return result;
}

// A struct or an array from its elements.
llvm::Value* translator::construct_aggregate(llvm::Type* t, const instruction_words& i) {
  require(t->isAggregateType(), i);
  llvm::Value* result = llvm::PoisonValue::get(t);
  unsigned at = 0;
  for (std::uint32_t id : i.operands) {
    require(type_inside(t, std::array{at}, i) == value(id)->getType(), i);
    result = b_.CreateInsertValue(result, value(id), at++);
  }
  require(at == (t->isStructTy() ? t->getStructNumElements() : t->getArrayNumElements()), i,
          "its number of parts is wrong");
  return result;
}

// SPIR-V shuffles vectors of different lengths, LLVM only those of one: the shorter one is widened first.
llvm::Value* translator::shuffle(const instruction_words& i) {
  llvm::Value *x = value(i.operands[0]), *y = value(i.operands[1]);
  auto *a = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()),
       *c = llvm::dyn_cast<llvm::FixedVectorType>(y->getType());
  require(a && c && a->getElementType() == c->getElementType(), i);
  unsigned m = a->getNumElements(), n = c->getNumElements(), widest = std::max(m, n);
  auto widen = [&](llvm::Value* v, unsigned has) {
    std::vector<int> lanes(widest, -1);
    for (unsigned k = 0; k < has; ++k) lanes[k] = static_cast<int>(k);
    return has == widest ? v : b_.CreateShuffleVector(v, lanes);
  };
  std::vector<int> lanes;
  for (std::uint32_t k : i.operands.subspan(2)) {
    require(k == 0xffffffff || k < m + n, i, "an index out of range");
    lanes.push_back(k == 0xffffffff ? -1 : static_cast<int>(k < m ? k : k - m + widest));
  }
  require(!lanes.empty() && lanes.size() <= 64, i);
  return b_.CreateShuffleVector(widen(x, m), widen(y, n), lanes);
}

bool translator::emit_composite(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  auto inside = [&](llvm::Type* t, words path) { return type_inside(t, path, i); };
  // The last index of a path may select an element of a vector.
  auto ends_in_vector = [&](llvm::Type* t, words path) {
    return !path.empty() && inside(t, path.first(path.size() - 1))->isVectorTy();
  };
  auto extract = [&](llvm::Value* v, words path) -> llvm::Value* {
    return path.empty() ? v : b_.CreateExtractValue(v, path);
  };
  switch (opcode) {
    case Op::OpCopyObject: define(i, value(i.operands[0])); return true;
    case Op::OpCompositeExtract: {
      llvm::Value* whole = value(i.operands[0]);
      words path = i.operands.subspan(1);
      require(inside(whole->getType(), path) == llvm_type(i.type), i);
      define(i, ends_in_vector(whole->getType(), path)
                    ? b_.CreateExtractElement(extract(whole, path.first(path.size() - 1)), path.back())
                    : extract(whole, path));
      return true;
    }
    case Op::OpCompositeInsert: {
      llvm::Value *part = value(i.operands[0]), *whole = value(i.operands[1]);
      words path = i.operands.subspan(2);
      require(inside(whole->getType(), path) == part->getType(), i);
      if (path.empty()) {
        define(i, part);
      } else if (ends_in_vector(whole->getType(), path)) {
        words before = path.first(path.size() - 1);
        llvm::Value* vector = b_.CreateInsertElement(extract(whole, before), part, path.back());
        define(i, before.empty() ? vector : b_.CreateInsertValue(whole, vector, before));
      } else {
        define(i, b_.CreateInsertValue(whole, part, path));
      }
      return true;
    }
    case Op::OpCompositeConstruct: {
      llvm::Type* t = llvm_type(i.type);
      auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(t);
      define(i, vector ? construct_vector(vector, i) : construct_aggregate(t, i));
      return true;
    }
    case Op::OpVectorShuffle: define(i, shuffle(i)); return true;
    case Op::OpVectorExtractDynamic:
    case Op::OpVectorInsertDynamic: {
      llvm::Value* vector = value(i.operands[0]);
      auto* t = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
      require(t != nullptr, i);
      bool insert = opcode == Op::OpVectorInsertDynamic;
      llvm::Value* index = integer_operand(i.operands[insert ? 2 : 1], i);
      require(index->getType()->isIntegerTy() && index->getType()->getIntegerBitWidth() <= 64, i);
      if (insert) require(value(i.operands[1])->getType() == t->getElementType(), i);
      define(i, insert ? b_.CreateInsertElement(vector, value(i.operands[1]), index)
                       : b_.CreateExtractElement(vector, index));
      return true;
    }
    default: return false;
  }
}

}  // namespace kiln::spirv
