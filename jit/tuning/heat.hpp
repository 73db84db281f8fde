// Where a model's time goes: what decides which kernels are tuned first.
#pragma once

#include <vector>

#include "jit/compile_bytecode.hpp"
#include "runtime/executable.hpp"
#include "runtime/io_buffers.hpp"

namespace kiln {

class device_turns;

// Milliseconds that one run spends in each kernel of `report` (compile_bytecode's, of the program that `loaded` was
// made of), all its occurrences together: the least of `runs` runs, in which every launch is timed by itself. Kernels
// that become the same code share their time equally. `turns` as in bench_options.
std::vector<double> measure_heat(const executable& loaded, const jit_report& report, const io_buffers& tensors,
                                 int runs, device_turns* turns = nullptr);

}  // namespace kiln
