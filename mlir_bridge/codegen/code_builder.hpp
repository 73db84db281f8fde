// Builds the code of a kernel: arithmetic on i64 offsets, vectors, loops, and loads and stores of tensor elements
// through llvm.ptr. Everything is emitted at the insertion point of `builder`. One builder belongs to one compile, on
// one thread.
//
// Conventions of all generated code:
//  * offsets, indices and loop variables are integers of codegen_target::index_bits (no `index` type anywhere): i64 on
//  a CPU;
//  * a value of `lanes` elements is a scalar T where lanes == 1 and vector<lanes x T> otherwise; lanes is a power of
//  two;
//  * values are in *compute type*: f32 for f16, bf16 and f32; f64; iN (signless) for integers of either sign; i1 for
//  bool.
//    load() and store() convert from and to storage (f16 and bf16 round to nearest even, bool is a byte of 0 or 1);
//  * loops are scf.for on i64; what is carried around a loop is passed as `carried` and comes back as results.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/element_type.hpp"
#include "mlir_bridge/codegen/codegen_target.hpp"
#include "mlir_bridge/codegen/mlir_common.hpp"

namespace kiln::codegen {

using mlir::Value;
using values = std::vector<Value>;

class code_builder {
 public:
  code_builder(mlir::MLIRContext* context, const codegen_target& target)
      : on(target), builder(context), where(builder.getUnknownLoc()) {}

  const codegen_target& on;
  mlir::OpBuilder builder;
  mlir::Location where;

  template <class Op, class... Args>
  auto make(Args&&... args) {
    return Op::create(builder, where, std::forward<Args>(args)...);
  }

  // --- types
  mlir::Type scalar_type(element_type type);               // compute type: f32, f64, i64, i32, i16, i8, i1
  mlir::Type type(element_type type, std::int64_t lanes);  // scalar_type or a vector of it
  static mlir::Type with_lanes(mlir::Type scalar, std::int64_t lanes);
  static std::int64_t lanes_of(Value v);  // 1 for scalars
  static mlir::Type scalar_of(Value v);   // element type of a vector, or the type itself

  mlir::Type index_type() { return builder.getIntegerType(static_cast<unsigned>(on.index_bits)); }
  element_type index_element() const { return on.index_bits == 64 ? element_type::i64 : element_type::i32; }
  // A signed integer of any width, whose value fits, as an index.
  Value to_index(Value integer);

  // --- constants; the index ones are folded by the arithmetic below
  Value constant(std::int64_t v);                     // index
  Value number(mlir::Type type, double v);            // of any scalar or vector type (integers truncate)
  Value integer(mlir::Type type, std::int64_t v);     // of any integer scalar or vector type
  Value lane_numbers(std::int64_t lanes);             // index <0, 1, 2, ...>
  static std::optional<std::int64_t> known(Value v);  // the value of an integer constant

  // --- integer arithmetic (scalars, or vectors of one length), folded. Division and remainder are of non-negative
  // numbers.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value rem(Value a, Value b);
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  Value add(Value a, std::int64_t b) { return add(a, integer(a.getType(), b)); }
  Value sub(Value a, std::int64_t b) { return sub(a, integer(a.getType(), b)); }
  Value mul(Value a, std::int64_t b) { return mul(a, integer(a.getType(), b)); }
  Value div(Value a, std::int64_t b) { return div(a, integer(a.getType(), b)); }
  Value rem(Value a, std::int64_t b) { return rem(a, integer(a.getType(), b)); }
  Value min(Value a, std::int64_t b) { return min(a, integer(a.getType(), b)); }
  Value max(Value a, std::int64_t b) { return max(a, integer(a.getType(), b)); }
  Value less(Value a, Value b);                     // signed, i1
  Value equal(Value a, Value b);                    // i1
  Value select(Value condition, Value a, Value b);  // condition: i1, or a vector of i1
  // Returns v as the sum of a value, which is null if v is a constant, and a constant.
  static std::pair<Value, std::int64_t> split_sum(Value v);
  // Row-major digits of a linear index: linear = ((d0 * dims[1]) + d1) * dims[2] + ...
  values delinearize(Value linear, std::span<const std::int64_t> dims);
  Value linearize(std::span<const Value> indices, std::span<const std::int64_t> dims);

  // --- vectors
  Value splat(Value scalar, std::int64_t lanes);  // scalar → lanes
  Value lane(Value vector, std::int64_t i);       // static lane
  Value from_lanes(std::span<const Value> scalars);
  // Horizontal combination of a vector to a scalar (floats reassociate).
  Value horizontal(mlir::vector::CombiningKind kind, Value vector);
  Value fma(Value a, Value b, Value c);  // a * b + c, floats

  // --- control
  // for (i = low; i < high; i += step) carried = body(i, carried); returns the final carried values.
  using loop_body = std::function<values(Value i, std::span<const Value> carried)>;
  values loop(Value low, Value high, std::int64_t step, values carried, const loop_body& body);
  void loop(Value low, Value high, std::int64_t step, const std::function<void(Value)>& body);
  void loop(std::int64_t low, std::int64_t high, std::int64_t step, const std::function<void(Value)>& body);
  values loop(std::int64_t low, std::int64_t high, std::int64_t step, values carried, const loop_body& body);
  // if (condition) then() else otherwise(): both return values of the same types.
  values branch(Value condition, const std::function<values()>& then, const std::function<values()>& otherwise);
  void when(Value condition, const std::function<void()>& then);

  // --- memory. `offset` counts elements of `type` from `pointer`. Addresses need element alignment only;
  // `multiple` says that the address is a multiple of so many elements, which lets a GPU load or store them at once.
  Value load(Value pointer, Value offset, element_type type, std::int64_t lanes, std::int64_t multiple = 1);
  Value load_strided(Value pointer, Value offset, std::int64_t stride, element_type type, std::int64_t lanes);
  Value load_gathered(Value pointer, Value offsets /*vector of indices*/, element_type type);
  void store(Value pointer, Value offset, element_type type, Value v, std::int64_t multiple = 1);
  // The address of an element, for llvm.load/llvm.store of your own.
  Value address(Value pointer, Value offset, element_type type);
  // Asks a CPU's cache of this level (1 or 2) for the line that holds an element, which need not exist.
  void prefetch(Value pointer, Value offset, element_type type, unsigned cache_level, bool written = false);
  // Room on the stack (at the entry of the function), 64-byte aligned; keep the sum well below 64 KiB.
  Value stack(element_type type, std::int64_t elements);

  // Conversion between storage values (f16, bf16 as i16, i8 for bool, ...) and compute values.
  Value to_compute(Value stored, element_type type);
  Value to_storage(Value computed, element_type type);
  mlir::Type storage_type(element_type type);

  // Unique-ing of index arithmetic so that equal index expressions are equal Values. A nested region sees what was made
  // outside it; what it makes is forgotten at its end. loop/branch/when do this by themselves.
  struct scope {
    explicit scope(code_builder& b) : owner(b), saved(b.known_) {}
    ~scope() { owner.known_ = std::move(saved); }
    code_builder& owner;
    std::map<std::tuple<int, void*, void*>, Value> saved;
  };

 private:
  friend struct scope;
  friend class kernel_emitter;  // forgets everything at the start of a stage
  template <class Op>
  Value arithmetic(int opcode, Value a, Value b);
  // load_strided for codegen_target::reads_between, in storage type.
  Value load_between(Value pointer, Value offset, std::int64_t stride, element_type type, std::int64_t lanes);
  std::map<std::tuple<int, void*, void*>, Value> known_;
  std::map<std::pair<void*, std::int64_t>, Value> constants_;
};

}  // namespace kiln::codegen
