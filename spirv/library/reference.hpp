// Reference implementations of the library's ONNX operators in plain C++, for `kiln verify` and for tests without a
// device. Any thread may call.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/program.hpp"
#include "spirv/object.hpp"

namespace kiln::spirv {

// Computes the outputs from the inputs and the shapes of the outputs.
using library_reference =
    std::function<std::vector<literal>(std::span<const literal> inputs, std::span<const shape> outputs)>;

// Returns an empty function for an operator that is not from the library (also for a user's operator with the same
// name) or that has no reference.
library_reference find_library_reference(const object& o);
// The same for an instruction of `source`. Also empty if the instruction is not a code object in amdgcnspirv.
library_reference find_library_reference(const program& source, const instruction& kernel);

// A runner for evaluate(). It runs the code objects of `source` that have a reference and throws error{not_native} for
// others. `source` must outlive it.
kernel_runner library_runner(const program& source);

}  // namespace kiln::spirv
