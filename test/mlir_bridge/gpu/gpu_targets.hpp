// Finalizes fusions for GPU rows of the target table and checks that every kernel has no spills and no private
// memory, and that its shared memory and threads are within the row's limits.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "ir/module.hpp"
#include "ir/native_kernel.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/finalize.hpp"

namespace kiln::test {

// The first row with each set of instructions. All rows if the environment has KILN_ALL_TARGETS;
// test/long/finalize_targets.py finalizes whole models for all of them.
std::vector<target_row> gpu_targets();

std::unique_ptr<module> gpu_fusion(const std::vector<shape>& inputs,
                                   const std::function<std::vector<value>(module&, const std::vector<value>&)>& build);

// Returns the kernel for one row. The only check: on AMD GPUs no matrix instruction may run while some lanes of its
// wave are off (exec_mask.hpp), so every AMD kernel of these tests is examined. If KILN_DUMP names a folder, the PTX is
// written there (for ptxas).
native_kernel finalize_for(const module& fusion, const target_row& target, finalize_trace* trace = nullptr);

// `private_memory` allows the generator to keep arrays on the stack.
void check_all_targets(const module& fusion, bool private_memory = false);

}  // namespace kiln::test
