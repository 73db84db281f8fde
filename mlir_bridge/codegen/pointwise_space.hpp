// The iteration space of a kernel or stage without an anchor: the positions of its results, with adjacent axes that
// every access treats as one collapsed into runs. The pointwise generators of CPUs and GPUs share it and decide how
// runs are divided into work items.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "mlir_bridge/codegen/access.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::codegen {

// A value and the buffer that it is stored to.
struct map_root {
  value v;
  buffer destination;
  // If set, the value is a part of the destination, whose `axis` is larger.
  struct window {
    std::size_t axis = 0;
    // Returns where the part begins along the axis.
    std::function<Value(const position& where)> start;
    bool start_depends_on_first_axis = false;
  };
  std::optional<window> part = {};
};

// Returns the outputs of a fusion without an anchor.
std::vector<map_root> output_roots(const kernel_emitter& e);

class pointwise_space {
 public:
  // All values must have equal dims. Reshapes at the end of a root are skipped, because they do not change the bytes.
  pointwise_space(kernel_emitter& e, std::vector<map_root> roots);

  const std::vector<map_root>& roots() const { return roots_; }
  // Returns the number of elements of each run, outermost first. There is at least one run (with one element, for
  // scalars).
  const std::vector<dim>& sizes() const { return sizes_; }
  // Returns the same as numbers; empty if one is open.
  const std::vector<std::int64_t>& extents() const { return extents_; }
  // Returns the positions along the last run where concat or pad switch operands, without 0 and the extent. Empty if
  // the last run combines several axes.
  std::vector<std::int64_t> cuts() const;
  // Returns the run along which some load is contiguous while that load is strided along the last run (a transpose).
  std::optional<std::size_t> transposed_run() const;
  // Returns the widest type that the roots are computed in. It determines how many lanes fill a register.
  element_type widest() const;
  // Returns the number of arithmetic operations per element.
  std::int64_t operations() const;

  // Returns the position for one index per run.
  position at(const std::vector<axis_index>& of_runs) const;
  // Returns the values of all roots at the position, ready to be stored.
  values evaluate(const position& where, std::int64_t lanes) const;
  void store(const position& where, std::span<const Value> results) const;  // `where` is in the dims of the values
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
