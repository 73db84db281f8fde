// Emits, as inline PTX, the instructions of sm_90a that LLVM has no operation for: barriers in shared memory, the
// tensor copy engine, warpgroup matrix instructions, clusters. Shared-memory addresses are i32, as in PTX. Internal to
// mlir_bridge/gpu.
#pragma once

#include <string>
#include <vector>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::gpu {

using namespace codegen;

// The shape of a warpgroup's product and the layout of its factors in shared memory: blocks of 128 bytes along k, or
// along rows if not k_inner.
struct wgmma_shape {
  // Columns of one instruction, a multiple of 16.
  std::int64_t columns = 256;
  // Number of blocks of 64 rows; they are contiguous in shared memory.
  std::int64_t row_blocks = 1;
  element_type a = element_type::f16, b = element_type::f16;
  bool a_k_inner = true, b_k_inner = true;
};

// A product of a step in registers: the first of its words, and where the second factor's step begins, in bytes after
// its address.
struct register_product {
  std::int64_t word, bytes;
};

class hopper_code {
 public:
  // With `bounded`, a wait of more than about 2^28 cycles ends the kernel with an error instead of hanging.
  hopper_code(code_builder& code, bool bounded) : code_(code), bounded_(bounded) {}

  Value number(std::int64_t v) { return code_.integer(code_.builder.getI32Type(), v); }
  Value narrow(Value index);            // index → i32
  Value shared_address(Value pointer);  // ptr addrspace(3) → i32
  // Returns x / (first ? a : b) for x below 2^32 / max(a, b), computed with a multiplication. A division by a variable
  // may become a call, and next to a call ptxas does not overlap warpgroup instructions.
  Value quotient(Value x, Value first, std::int64_t a, std::int64_t b);

  // --- warps, registers, clusters
  // Returns lane 0's value, so that the compiler treats it as uniform.
  Value uniform(Value v);
  void synchronize_warp();
  // Returns whether `condition` (i1) is true for any lane.
  Value any_of_warp(Value condition);
  // Returns the f32 of lane ^ mask.
  Value exchange(Value v, std::int64_t mask);
  // For a whole warpgroup; a multiple of 8.
  void set_register_limit(std::int64_t registers, bool increase);
  // Barrier for all threads of all workgroups of the cluster, and its two halves.
  void synchronize_cluster();
  void arrive_at_cluster();
  void wait_for_cluster();
  // Whole warps of the workgroup; barriers 1 to 15.
  void synchronize_threads(std::int64_t barrier, std::int64_t threads);
  void synchronize_threads(Value barrier, std::int64_t threads);  // i32
  // Counts the warp at the barrier, but does not wait.
  void arrive_threads(Value barrier, std::int64_t threads);
  // Loads 32 bits of another workgroup's shared memory, from the same address as in ours.
  Value load_word_of(Value rank, Value address);
  // Stores an f32 there. The other workgroup reads it after the cluster's next barrier.
  void store_word_of(Value rank, Value address, Value word);

  // --- barriers (8 bytes of shared memory). A phase ends after `count` arrivals, when all expected bytes have arrived.
  void initialize_barrier(Value barrier, std::int64_t count);
  void initialize_barrier(Value barrier, Value count);
  // Makes the barriers visible to the copy engine and the cluster. Call it before the workgroup's barrier.
  void publish_barriers();
  // Waits for the end of the phase with this parity.
  void wait(Value barrier, Value parity);
  void arrive(Value barrier);
  // Arrives at the same barrier of another workgroup of the cluster.
  void arrive_at(Value barrier, Value rank);
  void arrive_expecting(Value barrier, std::int64_t bytes);
  void arrive_expecting(Value barrier, Value bytes);  // i32

  // --- tensor copy engine. Copies a box of the tensor at `coordinates` (i32, innermost first) to the workgroups of the
  // cluster in `mask` (null: to this one).
  void prefetch_map(Value map);
  void copy_box(Value to, Value map, std::span<const Value> coordinates, Value barrier,
                std::optional<std::int64_t> mask, Value mask_shift);

  // --- warpgroup matrix instructions. Sums: row_blocks * columns / 2 registers, f32 or i32.
  static std::int64_t count_sums(const wgmma_shape& s) { return s.row_blocks * s.columns / 2; }
  mlir::Type sum_type(const wgmma_shape& s);
  values undefined_sums(const wgmma_shape& s);
  // Returns sums + A * B (only A * B if `accumulate`, an i32, is 0) over one block of 128 bytes of k. The result may be
  // read after finish().
  values multiply_block(const wgmma_shape& s, Value a_address, Value b_address, Value accumulate, const values& sums);
  // The same for some steps of 16 elements of 16 bits, with the first factor in registers: one block of 64 rows, of
  // which a thread has four words for each step (rows l / 4 and l / 4 + 8 of its warp, elements 2 (l % 4) and the next
  // one; then those 8 further along k).
  values multiply_registers(const wgmma_shape& s, const values& words, Value b_address,
                            std::span<const register_product> products, Value accumulate, const values& sums);
  // Afterwards, only the last block still reads shared memory.
  void wait_all_but_last();
  values finish(const values& sums);

  // --- any other instruction. It is not reordered with respect to the instructions of this class.
  values assembly(const std::string& text, const std::string& constraints, std::span<const Value> operands,
                  std::vector<mlir::Type> results = {});
  values assembly(const std::string& text, const std::string& constraints, std::initializer_list<Value> operands,
                  std::vector<mlir::Type> results = {}) {
    return assembly(text, constraints, std::span(operands.begin(), operands.size()), std::move(results));
  }

 private:
  Value descriptor(Value address, bool k_inner);
  code_builder& code_;
  bool bounded_;
};

}  // namespace kiln::gpu
