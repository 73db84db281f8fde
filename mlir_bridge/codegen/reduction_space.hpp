// Loops over the axes that an anchor combines (reduce, softmax, normalize, arg_reduce), with vectors either along them
// or, where the last axis is kept, across them.
//  * inner: the last axis is combined. An index of the kept axes owns a whole row; lanes run along the last combined
//  run and are
//    combined with each other at the end.
//  * otherwise the last axis is kept: lanes run along it, and every lane combines its own elements.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::codegen {

class reduction_space {
 public:
  reduction_space(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes);

  bool inner = true;
  std::vector<std::size_t> kept;  // axes of the parallel index, in order (not the lane axis, none of extent 1)
  std::vector<std::int64_t> kept_dims;
  std::size_t lane_axis = 0;     // where !inner
  std::int64_t lane_extent = 1;  // inner: of the last combined run; otherwise of the lane axis
  std::int64_t count = 1;        // elements combined into one

  // Combined axes that are walked as one, and their elements.
  const std::vector<std::vector<std::size_t>>& runs() const { return runs_; }
  const std::vector<std::int64_t>& run_extents() const { return run_extents_; }
  // The position of a kept index, with 0 along everything else.
  position start(std::span<const Value> at) const;

  // One step: computes with `lanes` elements at `where`; `valid` (i1 lanes, or null for all) masks lanes that were seen
  // already.
  using visitor =
      std::function<values(const position& where, std::int64_t lanes, Value valid, std::span<const Value> state)>;
  using combiner = std::function<values(std::span<const Value> a, std::span<const Value> b)>;

  // Inner mode: every element of a row. `copies` independent states of `lanes` lanes each start at `initial`; `combine`
  // joins them.
  values walk_row(std::span<const Value> at, std::int64_t lanes, std::int64_t copies, const values& initial,
                  const visitor& visit, const combiner& combine);
  // Inner mode: every element of a row once more, last vectors overlapping: for writing.
  void write_row(std::span<const Value> at, std::int64_t lanes, const std::function<void(const position&)>& write);

  // Outer mode: all combined positions of the lanes at `lane` (an index along the lane axis).
  values walk_column(std::span<const Value> at, Value lane, std::int64_t lanes, const values& initial,
                     const visitor& visit);

  // The parallel loops of outer mode over kept indices and the lane axis: body(at, first of `lanes`).
  void parallel_columns(const std::string& name, element_type type, std::int64_t cost,
                        const std::function<void(std::span<const Value>, Value, std::int64_t)>& body);
  // Offset of an element within the last run's row, for a row buffer (inner mode with a single run).
  bool single_run() const { return runs_.size() <= 1; }
  Value row_offset(const position& where) const { return runs_.empty() ? Value() : where[runs_.back().back()].base; }

 private:
  void set(position& where, std::size_t run, Value base, std::int64_t step) const;
  values nest(position where, std::size_t run, std::size_t end, values state,
              const std::function<values(const position&, values)>& body);

  kernel_emitter& e_;
  code_builder& code_;
  std::vector<std::int64_t> dims_;
  std::vector<std::vector<std::size_t>> runs_;  // combined axes that are walked as one
  std::vector<std::int64_t> run_extents_;
};

// How many vectors of `lanes` divide `extent`, of 4, 2, 1.
std::int64_t vectors_abreast(std::int64_t extent, std::int64_t lanes);

}  // namespace kiln::codegen
