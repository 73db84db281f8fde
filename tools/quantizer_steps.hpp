// Comparison of a model that rounds numbers to steps (quantizers, Round) with its reference. Two correct computations
// that differ in a last bit may round a number to neighbouring steps, and the outputs then differ by far more than the
// bit. Such a difference is measured rather than allowed for every model: the reference runs twice more, with each
// number moved by a 4096th of a step upwards and downwards before it is rounded.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/program.hpp"
#include "jit/comparison.hpp"

namespace kiln::tools {

// Moves each number that the module rounds by `steps` before it is rounded. Returns false if it rounds none.
bool move_rounded_numbers(module& m, double steps);

// The outputs of the reference whose rounded numbers are moved; empty if it rounds none.
using moved_reference = std::function<std::vector<literal>(double steps)>;

// Moves a clone of the program and evaluates it. The program must outlive the result.
moved_reference moved_program(const program& bound, std::span<const literal> inputs, kernel_runner run_kernel);

// Compares each output. One beyond its tolerance passes if its error is at most four times the distance between the two
// moved references and at most 3 %; `tolerance` then is this limit. `moved` is called only if an output is beyond its
// tolerance.
std::vector<comparison> compare_with_steps(std::span<const literal> got, std::span<const literal> expected,
                                           exactness computed, const moved_reference& moved);

}  // namespace kiln::tools
