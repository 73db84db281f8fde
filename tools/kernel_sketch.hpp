// The operations of a portable kernel, read from its printed form (`kiln inspect --kernel`), which a worker makes: the
// bytes of the kernel are never parsed here. For drawings and for counting operations. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/shape.hpp"

namespace kiln::tools {

struct sketch_tensor {
  std::string element;      // "f32"
  std::vector<dim> dims;    // in the kernel's symbols
  std::string str() const;  // "f32[batch, 64]"
};

struct sketch_step {
  std::string operation, attributes;           // "convolution", "strides = array<i64: 1, 1>, ..."
  std::vector<std::string> operands, results;  // "%arg0", "%0"
  std::vector<sketch_tensor> operand_types, result_types;
};

struct kernel_sketch {
  std::vector<std::string> parameters;  // "%arg0"
  std::vector<sketch_tensor> parameter_types;
  std::vector<sketch_step> steps;
  std::vector<std::string> results;
};

// Lines that are not understood are left out: a drawing with a gap is better than none.
kernel_sketch read_kernel_text(std::string_view text);

// Arithmetic operations of one launch for these shapes: a multiplication and an addition are two, an element of a
// pointwise function one, moving data none. nullopt if the sizes do not follow from the shapes.
std::optional<double> count_operations(const kernel_sketch& kernel, std::span<const shape> inputs,
                                       std::span<const shape> outputs);

}  // namespace kiln::tools
