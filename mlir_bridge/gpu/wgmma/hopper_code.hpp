// The instructions of sm_90a that LLVM has no operation for, as inline PTX: barriers in shared memory, the tensor copy
// engine, matrix instructions of warpgroups, clusters. Addresses of shared memory are i32 numbers, as PTX has them.
// Internal to mlir_bridge/gpu.
#pragma once

#include <string>
#include <vector>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::gpu {

using namespace codegen;

// One warpgroup's product of 64 rows: how its factors lie in shared memory, in blocks of 128 bytes of k (or of rows,
// where not k_inner).
struct wgmma_shape {
  std::int64_t columns = 256;   // of one instruction, a multiple of 16
  std::int64_t row_blocks = 1;  // of 64 rows each, one after the other in shared memory
  element_type a = element_type::f16, b = element_type::f16;
  bool a_k_inner = true, b_k_inner = true;
};

class hopper_code {
 public:
  // bounded: a wait of more than about 2^28 cycles ends the kernel with an error instead of hanging.
  hopper_code(code_builder& code, bool bounded) : code_(code), bounded_(bounded) {}

  Value number(std::int64_t v) { return code_.integer(code_.builder.getI32Type(), v); }
  Value narrow(Value index);            // index → i32
  Value shared_address(Value pointer);  // ptr addrspace(3) → i32

  // --- warps, registers, clusters
  Value uniform(Value v);  // lane 0's value, which the compiler then knows to be one for all lanes
  void synchronize_warp();
  void set_register_limit(std::int64_t registers, bool increase);  // of a whole warpgroup; a multiple of 8
  void synchronize_cluster();                                      // all threads of all workgroups of the cluster
  void synchronize_threads(std::int64_t barrier,
                           std::int64_t threads);  // whole warps of the workgroup; barriers 1 to 15
  Value load_word_of(Value rank, Value address);   // 32 bits of another workgroup's shared memory, at our address of it

  // --- barriers (8 bytes of shared memory): a phase ends when `count` arrivals and all expected bytes have come
  void initialize_barrier(Value barrier, std::int64_t count);
  void publish_barriers();                 // to the copy engine and the cluster, before the workgroup's barrier
  void wait(Value barrier, Value parity);  // for the end of the phase of this parity
  void arrive(Value barrier);
  void arrive_at(Value barrier, Value rank);  // at the same barrier of another workgroup of the cluster
  void arrive_expecting(Value barrier, std::int64_t bytes);

  // --- tensor copy engine: a box of the tensor at `coordinates` (i32, innermost first); `mask`: to these workgroups of
  // the cluster (null: to ours)
  void prefetch_map(Value map);
  void copy_box(Value to, Value map, std::span<const Value> coordinates, Value barrier,
                std::optional<std::int64_t> mask, Value mask_shift);

  // --- warpgroup matrix instructions. Sums: row_blocks * columns / 2 registers, f32 or i32.
  static std::int64_t count_sums(const wgmma_shape& s) { return s.row_blocks * s.columns / 2; }
  mlir::Type sum_type(const wgmma_shape& s);
  values undefined_sums(const wgmma_shape& s);
  // sums + A * B (A * B alone where `accumulate`, an i32, is 0) over one block of 128 bytes of k; the result may be
  // read after finish().
  values multiply_block(const wgmma_shape& s, Value a_address, Value b_address, Value accumulate, const values& sums);
  void wait_all_but_last();  // the blocks before the last one no longer read shared memory
  values finish(const values& sums);

  // --- any other instruction: it stays where it is among those of this class
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
