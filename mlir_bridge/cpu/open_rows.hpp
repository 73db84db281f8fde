// Loops over the axes that an anchor combines (reduce, softmax, normalize, arg_reduce) if sizes are open.
// codegen/reduction_space.hpp does the same for static shapes.
//  * inner mode: the last axis is combined. A work item owns whole rows; lanes run along the last axis.
//  * outer mode: the last axis is kept. Lanes run along it, and each lane combines its own elements.
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
  // `type` is the type that elements are computed in; vectors are of this type.
  open_rows(kernel_emitter& e, std::vector<dim> sizes, const std::vector<std::int64_t>& axes, element_type type);
  open_rows(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes, element_type type)
      : open_rows(e, kernel_emitter::sizes(input), axes, type) {}

  bool inner = true;
  // Lanes of the vectors along a combined row.
  std::int64_t lanes = 1;
  // Number of elements that are combined into one.
  dim count = 1;
  // Inner mode: size of the last combined axis.
  dim row_size = 1;
  // Inner mode: the last combined axis. Outer mode: the last axis.
  std::size_t lane_axis = 0;
  // Other combined axes; each has a loop of its own.
  std::vector<std::size_t> outer;

  // Returns the number of elements that are combined into one, as a value of this type.
  Value count_as(element_type type) const;

  // Inner mode: emits a stage that calls body(at) for each index of the kept axes.
  void parallel_rows(const std::string& name, std::int64_t cost,
                     const std::function<void(std::span<const Value>)>& body) const;
  // Returns the position of a kept index, with 0 along all other axes.
  position start(std::span<const Value> at) const;

  // `valid` (i1 lanes, or null for all) masks lanes beyond the end of the row. The elements in these lanes are copies
  // of others.
  using visitor = std::function<values(const position& where, Value valid, std::span<const Value> state)>;
  using combiner = std::function<values(std::span<const Value> a, std::span<const Value> b)>;
  // Inner mode: visits every element of a row with `copies` independent states, which `combine` merges at the end.
  values walk(std::span<const Value> at, std::int64_t copies, const values& initial, const visitor& visit,
              const combiner& combine) const;
  // Inner mode: visits every element of a row again, for writing. The last vectors may overlap.
  void write(std::span<const Value> at, const std::function<void(const position&, std::int64_t lanes)>& visit) const;
  // Visits one innermost row by offsets that are multiples of the lanes; the last vector may extend past the end. For
  // rows in a buffer that is padded to whole vectors.
  values sweep(const values& initial, const std::function<values(Value offset, std::span<const Value>)>& visit) const;

  // Outer mode: calls body(position, lanes) for each vector of the last axis. The position is 0 along the combined
  // axes.
  void parallel_columns(const std::string& name, std::int64_t cost,
                        const std::function<void(const position&, std::int64_t lanes)>& body) const;
  // Outer mode: visits all combined positions for a vector of columns.
  values walk_column(const position& column, const values& initial,
                     const std::function<values(const position&, std::span<const Value>)>& visit) const;

 private:
  values nest(position where, std::size_t depth, values state,
              const std::function<values(const position&, values)>& body) const;

  kernel_emitter& e_;
  codegen::code_builder& code_;
  std::vector<dim> sizes_;
  // Axes of the parallel index.
  std::vector<std::size_t> kept_;
  element_type type_;
};

// Returns the index of each lane of a position along an axis.
Value lane_indices(codegen::code_builder& code, const axis_index& index, std::int64_t lanes);

}  // namespace kiln::cpu
