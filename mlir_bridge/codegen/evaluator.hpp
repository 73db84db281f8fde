// Computes elements of the fusion's tensors where they are needed: the pull model that inlines prologues and
// epilogues. Make one evaluator for each straight piece of code (a loop body): it remembers what it has emitted, at its
// insertion point. Do not use it further inside or outside of that region; a nested loop makes its own.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::codegen {

// The position along one axis of `lanes` elements: lane l is at base + l * step, or, where `each` is set, at each[l].
struct axis_index {
  Value base;                              // an index
  std::int64_t step = 0;                   // of the lanes
  Value each;                              // vector of i64, or null
  std::int64_t low = 0, high = INT64_MAX;  // what is known: every lane is in [low, high)
  std::int64_t multiple = 1;               // base is a multiple of this
  bool uniform() const { return step == 0 && !each; }
};
using position = std::vector<axis_index>;
// What zero is a multiple of.
inline constexpr std::int64_t any_multiple = std::int64_t{1} << 40;

class evaluator {
 public:
  explicit evaluator(kernel_emitter& emitter) : e(emitter), code(emitter.code) {}

  // `lanes` consecutive elements of v along its last axis, the first at `indices` (i64 each), in compute type.
  Value element(value v, std::span<const Value> indices, std::int64_t lanes = 1);
  Value element(value v, std::initializer_list<Value> indices, std::int64_t lanes = 1) {
    return element(v, std::span(indices.begin(), indices.size()), lanes);
  }
  // The same at any position; the general form (lanes along another axis, strided, gathered).
  Value at(value v, const position& where, std::int64_t lanes);

  // The position of `lanes` elements along `axis` (-1: the last) from `indices`.
  position along(std::span<const Value> indices, std::int64_t lanes, std::int64_t axis = -1);

  // From here on v *is* `computed` (compute type of v's element type; an int8 dot's i32), at whatever position the
  // epilogue asks: an epilogue asks for the anchor's result at its own position only.
  void bind(value v, Value computed) { bound_[v] = computed; }

  // Evaluates every output of the fusion at the position and stores it: the epilogue. Positions are in the dims of the
  // outputs, which equal those of the anchor's result. The lanes must be consecutive along the last axis.
  void store_outputs(std::span<const Value> indices, std::int64_t lanes);
  void store_outputs(const position& where, std::int64_t lanes);  // lanes along any axis (scalar stores where strided)
  // One computed value into one buffer, at a position in the buffer's dims.
  void store(const buffer& destination, const position& where, Value computed);

 private:
  friend struct evaluator_rules;
  using key = std::pair<value, std::vector<std::tuple<void*, std::int64_t, void*>>>;
  Value compute(value v, const position& where, std::int64_t lanes);
  Value load(const buffer& b, const position& where, std::int64_t lanes);
  // The offset of a position, in elements: lane l is at `base + l * step`, or, where `each` is set, at each[l] of it.
  struct memory_offset {
    Value base, each;
    std::int64_t step = 0, multiple = any_multiple;  // base is a multiple of this
  };
  memory_offset offset_of(const buffer& b, const position& where, std::int64_t lanes);
  Value each_lane(const axis_index& index, std::int64_t lanes);  // vector of i64 (a scalar for one lane)
  axis_index from_each(Value each, std::int64_t lanes);
  kernel_emitter& e;
  code_builder& code;
  std::map<value, Value> bound_;
  std::map<key, Value> memo_;
};

}  // namespace kiln::codegen
