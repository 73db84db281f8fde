#include "jit/kernel_keys.hpp"

#include <llvm/Config/llvm-config.h>

#include "jit/code_digest.hpp"
#include "jit/targets.hpp"

namespace kiln {

kernel_key make_kernel_key(const std::string& payload, const std::vector<shape>& inputs,
                           const std::vector<shape>& outputs, const kernel_configuration& configuration,
                           const target_row& target, code_format format) {
  kernel_key key;
  key.payload = payload;
  key.inputs = inputs;
  key.outputs = outputs;
  key.configuration = configuration;
  key.target = describe(target);
  key.code = compiler_code(target.family, format);
  key.llvm = LLVM_VERSION_STRING;
  return key;
}

}  // namespace kiln
