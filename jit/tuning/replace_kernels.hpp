// Better kernels in the place of others of a finalized program, without asking the compiler or the cache again.
#pragma once

#include <map>

#include "jit/kernel_compiler.hpp"

namespace kiln {

// `native` is what compile_bytecode made of `bound`, or what this function made; `better` holds new code for groups of
// group_code_objects(bound).
program replace_kernels(const program& native, const program& bound, const kernel_groups& groups,
                        const std::map<std::size_t, native_bytes>& better);

}  // namespace kiln
