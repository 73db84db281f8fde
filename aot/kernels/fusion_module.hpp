// Copies one fusion of a partition into a module of its own. Parameters are named p0, p1, ... in the
// order of their first use, and scalars become constants. The copy holds no origins and no names from the model, so
// equal layers produce equal text and share one payload.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aot/kernels/partition.hpp"

namespace kiln {

// Prefix of the symbols that stand, in a copy, for sizes that the model computes in floats (ir/real_size.hpp).
inline constexpr std::string_view computed_prefix = "computed.";

struct fusion_copy {
  std::unique_ptr<module> body;
  std::vector<value> arguments;  // values of the model's module, one for each parameter
  // For example "convolution_add_relu" or "map_mul_add". It depends on the body only.
  std::string symbol;
  // Origins of all copied instructions, without duplicates.
  std::vector<std::string> origins;
  // Instructions of the model whose copies have dims that cannot be derived from the shapes of the parameters and
  // outputs.
  std::vector<const instruction*> untold;
};

fusion_copy copy_fusion(const partition& whole, std::size_t index);

}  // namespace kiln
