// Loops over the axes that an anchor combines (reduce, softmax, normalize, arg_reduce) if sizes are open: what
// codegen/reduction_space.hpp is for static shapes.
//  * inner: the last axis is combined. A work item owns whole rows; lanes run along the last axis.
//  * otherwise the last axis is kept: lanes run along it, and every lane combines its own elements.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/open_span.hpp"

namespace kiln::cpu {

using codegen::axis_index;
using codegen::position;
using codegen::values;

class open_rows {
 public:
  // Vectors are of `type`, which the elements are computed in.
  open_rows(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes, element_type type);

  bool inner = true;
  std::int64_t lanes = 1;          // of the vectors along a combined row
  dim count = 1;                   // elements combined into one
  dim row_size = 1;                // inner: of the last combined axis
  std::size_t lane_axis = 0;       // inner: the last combined axis; otherwise the last axis
  std::vector<std::size_t> outer;  // combined axes that are walked one by one

  // The number of elements combined into one, as a number of this type.
  Value count_as(element_type type) const;

  // Inner mode: body(at) for each index of the kept axes.
  void parallel_rows(const std::string& name, std::int64_t cost,
                     const std::function<void(std::span<const Value>)>& body) const;
  // The position of a kept index, with 0 along everything else.
  position start(std::span<const Value> at) const;

  // `valid` (i1 lanes, or null for all) masks lanes beyond the end of the row; their elements are copies of others.
  using visitor = std::function<values(const position& where, Value valid, std::span<const Value> state)>;
  using combiner = std::function<values(std::span<const Value> a, std::span<const Value> b)>;
  // Inner mode: every element of a row, with `copies` states beside each other that `combine` joins.
  values walk(std::span<const Value> at, std::int64_t copies, const values& initial, const visitor& visit,
              const combiner& combine) const;
  // Inner mode: every element of a row once more, last vectors overlapping: for writing.
  void write(std::span<const Value> at, const std::function<void(const position&, std::int64_t lanes)>& visit) const;
  // One innermost row from its position: offsets along it that are multiples of the lanes, the last vector beyond its
  // end. For rows that are kept in a buffer with room for a whole vector.
  values sweep(const values& initial, const std::function<values(Value offset, std::span<const Value>)>& visit) const;

  // Outer mode: body(position of the lanes at 0 of the combined axes, lanes) for each vector of the last axis.
  void parallel_columns(const std::string& name, std::int64_t cost,
                        const std::function<void(const position&, std::int64_t lanes)>& body) const;
  // Outer mode: all combined positions of a vector.
  values walk_column(const position& column, const values& initial,
                     const std::function<values(const position&, std::span<const Value>)>& visit) const;

 private:
  values nest(position where, std::size_t depth, values state,
              const std::function<values(const position&, values)>& body) const;

  kernel_emitter& e_;
  codegen::code_builder& code_;
  std::vector<dim> sizes_;
  std::vector<std::size_t> kept_;  // axes of the parallel index
  element_type type_;
};

// The index of each lane of a position along an axis.
Value lane_indices(codegen::code_builder& code, const axis_index& index, std::int64_t lanes);

}  // namespace kiln::cpu
