// A stage whose threads work together: waves, shared memory (LDS), barriers, shuffles. What is checked against the
// target's row: threads and LDS.
//
//   workgroup group(e, "softmax", {rows, 1, 1}, 256);
//   Value region = group.lds(1024);               // before or between uses; regions lie one after another
//   ... code with group.thread(), group.barrier(), e.pointer(buffer), evaluator ...
//   group.close();
//
// Indices are of e.code.index_type(). Internal to mlir_bridge/gpu.
#pragma once

#include <array>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::gpu {

using namespace codegen;

inline constexpr unsigned lds_space = 3;

class workgroup {
 public:
  // Opens the stage. grid counts workgroups. Throws error{unsupported} where the target has no such workgroups.
  workgroup(kernel_emitter& e, const std::string& name, std::array<std::int64_t, 3> grid, std::int64_t threads,
            bool prepare = false);
  // The same with a grid of one dimension, which may be open.
  workgroup(kernel_emitter& e, const std::string& name, const dim& groups, std::int64_t threads, bool prepare = false);
  // Ends the stage; lds_bytes of the launch and the size of the shared memory are known now.
  void close();

  std::int64_t threads() const { return threads_; }
  std::int64_t wave_size() const { return e_.target.gpu.wave; }
  std::int64_t waves() const { return threads_ / wave_size(); }
  Value thread() const { return thread_; }
  Value lane() const { return lane_; }  // thread % wave size
  Value wave() const { return wave_; }  // thread / wave size, the same for all its threads
  Value block(std::size_t axis = 0) const { return block_[axis]; }

  // A pointer (address space 3) to `bytes` of shared memory. Offsets are counted by the code builder's load and store
  // as usual.
  Value lds(std::int64_t bytes, std::int64_t alignment = 16);
  // Another view of memory that lds() gave out: offset bytes from the start of the workgroup's shared memory.
  Value lds_at(std::int64_t offset);
  std::int64_t lds_used() const { return used_; }
  // Uses no more than `bytes` from here on: what was given out beyond is given out again. The caller puts a barrier
  // between.
  void release_lds(std::int64_t bytes) { used_ = bytes; }

  // All threads arrive; what they wrote to shared memory is seen by all. Traffic to global memory is not waited for.
  void barrier();
  // The value of thread lane ^ mask of the wave (scalars of any width); mask is a power of two, or 3, 7, 15.
  Value shuffle_xor(Value v, std::int64_t mask);
  // The same combined over all lanes of the wave, or over aligned groups of `width` lanes, in every lane; `combine` is
  // commutative and associative.
  using combiner = std::function<Value(Value, Value)>;
  Value reduce_wave(Value v, const combiner& combine, std::int64_t width = 0);
  // The same over the workgroup, in every thread, always in the same order. Contains two barriers; the LDS it uses is
  // given back.
  Value reduce(Value v, const combiner& combine);
  // Of several values at once (a value and its index).
  using tuple_combiner = std::function<values(std::span<const Value>, std::span<const Value>)>;
  values reduce_wave(values v, const tuple_combiner& combine, std::int64_t width = 0);
  values reduce(values v, const tuple_combiner& combine);

  // Values of any type in shared memory, as they are: index counts values of that type.
  static std::int64_t lds_bytes_of(Value v);
  void store_raw(Value region, Value index, Value v);
  Value load_raw(Value region, Value index, mlir::Type type);

 private:
  void begin(const std::string& name, const dim& groups, std::array<std::int64_t, 2> grid_yz, bool prepare);
  Value exchange(Value bits, std::int64_t mask);  // 32 bits
  Value lds_slot(Value region, Value index, mlir::Type type);
  kernel_emitter& e_;
  code_builder& code_;
  std::int64_t threads_, used_ = 0, most_ = 0;
  Value thread_, lane_, wave_;
  std::array<Value, 3> block_;
  mlir::LLVM::GlobalOp shared_;
};

}  // namespace kiln::gpu
