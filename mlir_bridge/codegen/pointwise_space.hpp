// What a kernel or stage without an anchor loops over: the positions of its results, axes that every access walks as
// one joined into runs. Shared by the map generators of CPUs and GPUs, which decide how the runs are cut into work.
#pragma once

#include <optional>
#include <vector>

#include "mlir_bridge/codegen/access.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::codegen {

// A value and the buffer that it is written to.
struct map_root {
  value v;
  buffer destination;
};

// The outputs of a fusion without an anchor.
std::vector<map_root> output_roots(const kernel_emitter& e);

class pointwise_space {
 public:
  // All roots have equal dims. Reshapes at their end are dropped: they are the same bytes.
  pointwise_space(kernel_emitter& e, std::vector<map_root> roots);

  const std::vector<map_root>& roots() const { return roots_; }
  // Elements of each run, outermost first; at least one run (of one element for scalars).
  const std::vector<dim>& sizes() const { return sizes_; }
  // The same as numbers; empty if one is open.
  const std::vector<std::int64_t>& extents() const { return extents_; }
  // Positions along the last run where concat or pad change sides, without 0 and the extent; none where that run joins
  // several axes.
  std::vector<std::int64_t> cuts() const;
  // The run that some load walks contiguously while it strides along the last run (a transpose).
  std::optional<std::size_t> transposed_run() const;
  // The widest type that the roots are computed in decides how many lanes fill a register.
  element_type widest() const;
  // Arithmetic operations for one element.
  std::int64_t operations() const;

  // A position from one index for each run.
  position at(const std::vector<axis_index>& of_runs) const;
  // All roots at the position, and their way to memory.
  values evaluate(const position& where, std::int64_t lanes) const;
  void store(const position& where, std::span<const Value> results) const;
  void emit(const position& where, std::int64_t lanes) const { store(where, evaluate(where, lanes)); }

 private:
  kernel_emitter& e_;
  std::vector<map_root> roots_;
  std::vector<dim> domain_;
  access_analysis analysis_;
  std::vector<std::vector<std::size_t>> runs_;
  std::vector<dim> sizes_;
  std::vector<std::int64_t> extents_;
};

}  // namespace kiln::codegen
