// Computes elements of the fusion's tensors on demand: the pull model that inlines prologues and epilogues. Create one
// evaluator per straight-line piece of code (a loop body). It caches the values that it has emitted at its insertion
// point, so do not use it in an enclosing or nested region; a nested loop needs an evaluator of its own.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::codegen {

// The positions of `lanes` elements along one axis: lane l is at base + l * step or, if `each` is set, at each[l].
struct axis_index {
  Value base;  // an index
  // Distance between lanes.
  std::int64_t step = 0;
  Value each;  // vector of i64, or null
  // Known bounds: every lane is in [low, high).
  std::int64_t low = 0, high = INT64_MAX;
  // `base` is known to be a multiple of this.
  std::int64_t multiple = 1;
  bool uniform() const { return step == 0 && !each; }
};
using position = std::vector<axis_index>;
// The `multiple` of zero, which is a multiple of every number.
inline constexpr std::int64_t any_multiple = std::int64_t{1} << 40;

class evaluator {
 public:
  explicit evaluator(kernel_emitter& emitter) : e(emitter), code(emitter.code) {}

  // Returns `lanes` consecutive elements of v along its last axis, in compute type. The first one is at `indices` (i64
  // each).
  Value element(value v, std::span<const Value> indices, std::int64_t lanes = 1);
  Value element(value v, std::initializer_list<Value> indices, std::int64_t lanes = 1) {
    return element(v, std::span(indices.begin(), indices.size()), lanes);
  }
  // The general form: lanes may lie along another axis, or be strided or gathered.
  Value at(value v, const position& where, std::int64_t lanes);

  // Returns the position of `lanes` elements along `axis` (-1 means the last one), starting at `indices`.
  position along(std::span<const Value> indices, std::int64_t lanes, std::int64_t axis = -1);

  // Defines the value of v as `computed` (in the compute type of v's element type; i32 for an int8 dot). The position
  // at which v is read is ignored: an epilogue reads the anchor's result only at its own position.
  void bind(value v, Value computed) { bound_[v] = computed; }

  // Evaluates every output of the fusion at the position and stores it (the epilogue). Positions are in the dims of the
  // outputs, which equal the dims of the anchor's result. Lanes must be consecutive along the last axis.
  void store_outputs(std::span<const Value> indices, std::int64_t lanes);
  // Lanes may lie along any axis; strided lanes are stored one by one.
  void store_outputs(const position& where, std::int64_t lanes);
  // Stores a computed value to a buffer, at a position in the buffer's dims.
  void store(const buffer& destination, const position& where, Value computed);

 private:
  friend struct evaluator_rules;
  using key = std::pair<value, std::vector<std::tuple<void*, std::int64_t, void*>>>;
  Value compute(value v, const position& where, std::int64_t lanes);
  Value load(const buffer& b, const position& where, std::int64_t lanes, Value pointer);
  // An offset in elements: lane l is at `base + l * step` or, if `each` is set, at base + each[l].
  struct memory_offset {
    Value base, each;
    // `base` is a multiple of `multiple`.
    std::int64_t step = 0, multiple = any_multiple;
  };
  memory_offset offset_of(const buffer& b, const position& where, std::int64_t lanes);
  // Returns a vector of i64 (a scalar for one lane).
  Value each_lane(const axis_index& index, std::int64_t lanes);
  axis_index from_each(Value each, std::int64_t lanes);
  kernel_emitter& e;
  code_builder& code;
  std::map<value, Value> bound_;
  std::map<key, Value> memo_;
};

}  // namespace kiln::codegen
