// Rules that compute the elements of one instruction's result from elements of its operands, one for each inlinable
// operation. Internal to the evaluator.
#pragma once

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::codegen {

struct evaluator_rules {
  evaluator& ev;
  kernel_emitter& e;
  code_builder& code;
  const instruction& node;
  const position& where;
  std::int64_t lanes;

  Value compute();

 private:
  value operand(std::size_t i = 0) const { return node.inputs()[i]; }
  const std::vector<dim>& operand_dims(std::size_t i = 0) const { return kernel_emitter::sizes(operand(i)); }
  const std::vector<dim>& result_dims() const { return node.outputs()[0].dims; }

  Value rule(const elementwise& op);
  bool skips_padding() const;  // of a `where`
  Value rule(const convert& op);
  Value rule(const bit_cast& op);
  Value rule(const constant& op);
  Value rule(const broadcast& op);
  Value rule(const reshape& op);
  Value rule(const transpose& op);
  Value rule(const slice& op);
  Value rule(const pad& op);
  Value rule(const concat& op);
  Value rule(const gather& op);
  Value rule(const gather_elements& op);
  Value rule(const gather_nd& op);
  Value rule(const iota& op);
  Value rule(const resize& op);
  template <class Op>
  bool try_rule(Value& result);

  // What an element of a resized axis mixes: positions along the axis and, unless the mode is nearest, their weights.
  struct mixed_axis {
    std::size_t axis;
    std::vector<axis_index> index;
    std::vector<Value> weight;
  };
  mixed_axis tabulated(const resize& op, std::size_t axis, element_type weight_type);  // of static sizes
  mixed_axis computed(const resize& op, std::size_t axis, element_type weight_type);   // of open sizes

  // --- index arithmetic
  axis_index affine(const axis_index& index, std::int64_t factor, const dim& offset);
  axis_index times(const axis_index& index, const dim& factor);
  axis_index sum(const axis_index& a, const axis_index& b);
  // Returns {index / divisor, index % divisor}. Indices must not be negative.
  std::pair<axis_index, axis_index> divide(const axis_index& index, const dim& divisor);
  // Broadcasting: returns position 0 if the axis `from` has one element, and the index itself if `from` equals `to`.
  // For open sizes the choice is made at run time.
  axis_index stretched(const axis_index& index, const dim& from, const dim& to);
  axis_index fixed(std::int64_t position);
  // Returns true if all lanes are on the same side of every boundary. Then one comparison of the base holds for all
  // lanes.
  bool on_one_side(const axis_index& index, std::span<const dim> boundaries) const;
  // Reads an element of an index tensor as a position in [0, extent): negative indices count from the end, and indices
  // out of range are clamped.
  // Returns true if the elements of v at all lanes are known to be equal. Looks at no more than `operations`
  // operations.
  static bool is_equal_in_lanes(value v, const position& where, int& operations);
  axis_index looked_up(value indices, const position& at, const dim& extent);
  axis_index padded(const axis_index& index, const pad& op, std::size_t axis, const dim& extent);
  Value concat_from(const concat& op, std::size_t first, std::size_t last, const std::vector<dim>& begins);
  // Reads one of the operands [first, last), which are alike, by its number. Null if they are not alike, or if the
  // index is not a multiple of a loop's variable from which the number follows.
  Value concat_by_number(const concat& op, std::size_t first, std::size_t last, const std::vector<dim>& begins);
  // Runs `body` and discards the cached values afterwards, because code inside a branch is not visible outside it.
  Value nested(const std::function<Value()>& body);
  Value branch(Value condition, const std::function<Value()>& then, const std::function<Value()>& otherwise);
  Value reads_table(element_type type, const std::vector<double>& numbers, const axis_index& index);
};

}  // namespace kiln::codegen
