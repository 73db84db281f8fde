// Loops over the axes that an anchor combines (reduce, softmax, normalize, arg_reduce). There are two modes:
//  * inner: the last axis is combined. Each index of the kept axes owns a whole row. Lanes run along the last combined
//    run and are combined with each other at the end.
//  * outer: the last axis is kept. Lanes run along it, and each lane combines its own elements.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "mlir_bridge/codegen/alike_operands.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::codegen {

class reduction_space {
 public:
  reduction_space(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes);

  bool inner = true;
  // Axes of the parallel index, in order, without the lane axis and axes of extent 1.
  std::vector<std::size_t> kept;
  std::vector<std::int64_t> kept_dims;
  // Outer mode: the axis along which lanes run.
  std::size_t lane_axis = 0;
  // Inner mode: extent of the last combined run. Outer mode: extent of the lane axis.
  std::int64_t lane_extent = 1;
  // Number of elements that are combined into one.
  std::int64_t count = 1;

  // Returns the position of a kept index, with 0 along all other axes.
  position start(std::span<const Value> at) const;

  // One step: computes with `lanes` elements at `where`. `valid` (i1 lanes, or null for all) masks lanes that were
  // visited before.
  using visitor =
      std::function<values(const position& where, std::int64_t lanes, Value valid, std::span<const Value> state)>;
  using combiner = std::function<values(std::span<const Value> a, std::span<const Value> b)>;

  // Inner mode: visits every element of a row. Uses `copies` independent states of `lanes` lanes, each starting at
  // `initial`; `combine` merges them at the end.
  values walk_row(std::span<const Value> at, std::int64_t lanes, std::int64_t copies, const values& initial,
                  const visitor& visit, const combiner& combine);
  // Inner mode: visits every element of a row again, for writing. The last vectors may overlap.
  void write_row(std::span<const Value> at, std::int64_t lanes, const std::function<void(const position&)>& write);

  // Outer mode: visits all combined positions for the lanes that start at `lane`, an index along the lane axis.
  values walk_column(std::span<const Value> at, Value lane, std::int64_t lanes, const values& initial,
                     const visitor& visit);

  // Outer mode: parallel loops over the kept indices and the lane axis. Calls body(at, index of the first of `lanes`).
  void parallel_columns(const std::string& name, element_type type, std::int64_t cost,
                        const std::function<void(std::span<const Value>, Value, std::int64_t)>& body);
  // Outer mode: if the input is a concat along the lane axis whose operands consist of whole vectors, the blocks of
  // parallel_columns lie in one operand each. walk_operands(), in its body, then emits walk() for each operand or run
  // of alike operands, so that no loop inside it asks which operand it reads. Otherwise it emits walk() once.
  void divide_by_operand(element_type type);
  values walk_operands(Value first, const std::function<values()>& walk);
  // Returns the offset of an element within the row, for a row buffer (inner mode with a single run).
  bool single_run() const { return runs_.size() <= 1; }
  Value row_offset(const position& where) const { return runs_.empty() ? Value() : where[runs_.back().back()].base; }

 private:
  void set(position& where, std::size_t run, Value base, std::int64_t step) const;
  values nest(position where, std::size_t run, std::size_t end, values state,
              const std::function<values(const position&, values)>& body);

  kernel_emitter& e_;
  code_builder& code_;
  std::vector<std::int64_t> dims_;
  // Combined axes; each list is iterated as one axis.
  std::vector<std::vector<std::size_t>> runs_;
  std::vector<std::int64_t> run_extents_;
  std::vector<std::int64_t> cuts_;
  std::vector<axis_segment> segments_;  // empty unless divide_by_operand() found operands
  values walk_operands(Value first, std::size_t begin, std::size_t end, const std::function<values()>& walk);
  std::int64_t divided_ = 0;                   // a number of lanes that divides every operand, or the lane axis
  std::int64_t lane_low_ = 0, lane_high_ = 0;  // where walk_column is known to be along the lane axis
};

// Returns 4, 2 or 1: the largest of these numbers such that this many vectors of `lanes` divide `extent`.
std::int64_t vectors_abreast(std::int64_t extent, std::int64_t lanes);

}  // namespace kiln::codegen
