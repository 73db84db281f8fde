// Measures how a model's run time is distributed over its kernels. The tuner tunes the hottest kernels first.
#pragma once

#include <vector>

#include "jit/compile_bytecode.hpp"
#include "runtime/executable.hpp"
#include "runtime/io_buffers.hpp"

namespace kiln {

class device_turns;

// Milliseconds that one run spends in each kernel of `report`, summed over the kernel's occurrences. `report` is that
// of compile_bytecode for the program that was loaded as `loaded`. Every launch is timed by itself, and the minimum
// over `runs` runs is taken. Kernels with the same native code share their time equally. `turns` as in bench_options.
std::vector<double> measure_kernel_times(const executable& loaded, const jit_report& report, const io_buffers& tensors,
                                         int runs, device_turns* turns = nullptr);

}  // namespace kiln
