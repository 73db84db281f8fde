// Replaces kernels of a finalized program by better ones, without asking the compiler or the cache again.
#pragma once

#include <map>

#include "jit/kernel_compiler.hpp"

namespace kiln {

// `native` is the result of compile_bytecode for `bound`, or of an earlier call of this function. `better` maps indices
// of `groups`, which is group_code_objects(bound), to their new code.
program replace_kernels(const program& native, const program& bound, const kernel_groups& groups,
                        const std::map<std::size_t, native_bytes>& better);

}  // namespace kiln
