// The axes of a tensor of open sizes of which some are combined. The last axes, if all of them are combined and the
// tensor is in memory, are joined to one: rows of few elements would not fill the lanes.
#pragma once

#include <optional>
#include <vector>

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::cpu {

class joined_axes {
 public:
  joined_axes(codegen::kernel_emitter& e, value input, const std::vector<std::int64_t>& combined);

  // Sizes of the axes after joining, and which of them are combined.
  const std::vector<dim>& sizes() const { return sizes_; }
  const std::vector<std::int64_t>& combined() const { return combined_; }

  // Returns the elements at a position of these axes.
  codegen::Value at(const codegen::position& where, std::int64_t lanes) const;
  // Returns the position in the axes of the tensor: 0 along joined ones.
  codegen::position all_axes(codegen::position where) const;

 private:
  codegen::kernel_emitter& e_;
  value input_;
  std::vector<dim> sizes_;
  std::vector<std::int64_t> combined_;
  // The input as memory with the axes of `sizes_`; no value if no axes are joined.
  std::optional<codegen::buffer> memory_;
};

}  // namespace kiln::cpu
