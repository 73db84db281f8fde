// A stage whose threads cooperate with waves, shared memory (LDS), barriers and shuffles. Numbers of threads and LDS
// bytes are checked against the target's row.
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
  // Opens the stage; `grid` counts workgroups. Throws error{unsupported} if the target does not support such
  // workgroups.
  workgroup(kernel_emitter& e, const std::string& name, std::array<std::int64_t, 3> grid, std::int64_t threads,
            bool prepare = false);
  // Opens the stage with a one-dimensional grid, whose size may be open.
  workgroup(kernel_emitter& e, const std::string& name, const dim& groups, std::int64_t threads, bool prepare = false);
  // Ends the stage; lds_bytes of the launch and the size of the shared memory are known now.
  void close();

  std::int64_t threads() const { return threads_; }
  std::int64_t wave_size() const { return e_.target.gpu.wave; }
  std::int64_t waves() const { return threads_ / wave_size(); }
  Value thread() const { return thread_; }
  // thread % wave size.
  Value lane() const { return lane_; }
  // thread / wave size; uniform within a wave.
  Value wave() const { return wave_; }
  Value block(std::size_t axis = 0) const { return block_[axis]; }

  // Allocates `bytes` of shared memory and returns a pointer (address space 3). The code builder's load and store count
  // offsets in elements, as usual.
  Value lds(std::int64_t bytes, std::int64_t alignment = 16);
  // Returns another pointer into memory from lds(): `offset` bytes from the start of the workgroup's shared memory.
  Value lds_at(std::int64_t offset);
  std::int64_t lds_used() const { return used_; }
  // Frees everything beyond the first `bytes` for new allocations. The caller must put a barrier in between.
  void release_lds(std::int64_t bytes) { used_ = bytes; }

  // Dependent launch (back_ends/nvidia/dependent_launch.hpp); neither emits anything on targets without it.
  // Lets the next kernel of a graph be placed once all workgroups of this one are here or have ended. For kernels whose
  // successors have few workgroups or one for each compute unit: others would crowd on the compute units that are free
  // early. To be called when memory is no longer read, because what the successors read early would be in the way.
  void admit_successors();
  // Waits for the predecessors here and not at the start of the kernel. Before it, only launch::early_arguments may be
  // read; every thread that accesses other memory must have waited, or be told by one that has.
  void await_predecessors();

  // Barrier for all threads. Afterwards all of them see earlier writes to shared memory. Does not wait for accesses to
  // global memory.
  void barrier();
  // Returns the value of lane ^ mask in the wave (scalars of any width). `mask` is a power of two, or 3, 7 or 15.
  Value shuffle_xor(Value v, std::int64_t mask);
  // Returns an index that is equal in all lanes of the wave, so that the compiler knows that it is.
  Value uniform(Value index);
  // Combines the value over all lanes of the wave, or over aligned groups of `width` lanes; every lane gets the result.
  // `combine` must be commutative and associative.
  using combiner = std::function<Value(Value, Value)>;
  Value reduce_wave(Value v, const combiner& combine, std::int64_t width = 0);
  // Combines the value over the workgroup in a fixed order; every thread gets the result. Contains two barriers; the
  // LDS that it uses is free again afterwards.
  Value reduce(Value v, const combiner& combine);
  // The same for several values at once (for example a value and its index).
  using tuple_combiner = std::function<values(std::span<const Value>, std::span<const Value>)>;
  values reduce_wave(values v, const tuple_combiner& combine, std::int64_t width = 0);
  values reduce(values v, const tuple_combiner& combine);

  // Values of any type in shared memory without conversion; `index` counts values of that type.
  static std::int64_t lds_bytes_of(Value v);
  void store_raw(Value region, Value index, Value v);
  Value load_raw(Value region, Value index, mlir::Type type);

 private:
  void control_launch(std::string_view text);
  void begin(const std::string& name, const dim& all_groups, std::array<std::int64_t, 2> grid_yz, bool prepare);
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
