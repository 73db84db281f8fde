#include "spirv/lowering/words.hpp"

#include "ir/error.hpp"

namespace kiln::spirv {

using llvm::Value;

Value* word_by_word(llvm::IRBuilder<>& b, Value* v, const std::function<Value*(Value*)>& exchange) {
  llvm::Type* t = v->getType();
  auto bits = static_cast<unsigned>(t->getPrimitiveSizeInBits());
  if (!bits) throw error(error_kind::unsupported, "a lane exchange of a value that is not a number is not supported");
  unsigned count = (bits + 31) / 32;
  Value *all = b.CreateZExt(b.CreateBitCast(v, b.getIntNTy(bits)), b.getIntNTy(count * 32)),
        *result = b.getIntN(count * 32, 0);
  for (unsigned k = 0; k < count; ++k) {
    Value* word = exchange(b.CreateTrunc(b.CreateLShr(all, k * 32), b.getInt32Ty()));
    result = b.CreateOr(result, b.CreateShl(b.CreateZExt(word, result->getType()), k * 32));
  }
  return b.CreateBitCast(b.CreateTrunc(result, b.getIntNTy(bits)), t);
}

}  // namespace kiln::spirv
