#include "jit/tuning/replace_kernels.hpp"

namespace kiln {

// Cloning keeps the order of modules and instructions, so the same position is the same instruction in both programs.
program replace_kernels(const program& native, const program& bound, const kernel_groups& groups,
                        const std::map<std::size_t, native_bytes>& better) {
  program result = native.clone();
  auto source = bound.modules().begin();
  for (module& m : result.modules()) {
    auto portable = source++->instructions().begin();
    for (instruction& i : m.instructions()) {
      auto group = groups.of.find(&*portable++);
      if (group == groups.of.end()) continue;
      auto found = better.find(group->second);
      if (found == better.end()) continue;
      content_hash hash = blake3(*found->second);
      result.add_kernel(hash, found->second);
      code_object code = *i.op().get_if<code_object>();
      code.payload = hash.hex();
      m.set_operation(&i, code);
    }
  }
  result.erase_unused_kernels();
  return result;
}

}  // namespace kiln
