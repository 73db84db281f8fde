// What the library's ONNX operators should give, in plain C++ beside their kernels: for `kiln verify` and for tests
// without a device. Any thread.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/program.hpp"
#include "spirv/object.hpp"

namespace kiln::spirv {

// Inputs and the outputs' shapes → outputs.
using library_reference =
    std::function<std::vector<literal>(std::span<const literal> inputs, std::span<const shape> outputs)>;

// Empty for an operator that is not the library's (a user's own of the same name is not) and for one without a
// reference.
library_reference find_library_reference(const object& o);
// The same for an instruction of `source`: empty, too, for what is no code object in amdgcnspirv.
library_reference find_library_reference(const program& source, const instruction& kernel);

// For evaluate(): runs the code objects of `source` that have a reference, throws error{not_native} for others.
// `source` must outlive it.
kernel_runner library_runner(const program& source);

}  // namespace kiln::spirv
