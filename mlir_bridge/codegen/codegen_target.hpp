// Describes the differences between the targets of the shared code builder, evaluator and kernel emitter: on a CPU,
// stages are loops over a range of work items; on a GPU, they are grids of threads. One constant object of plain data
// per target.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/instruction.hpp"
#include "mlir/IR/Value.h"

namespace kiln::codegen {

class code_builder;
class kernel_emitter;
struct buffer;

struct codegen_target {
  std::string_view name = "CPU";  // for messages
  int index_bits = 64;            // of offsets, indices and loop variables
  unsigned global_space = 0;      // address spaces of buffers,
  unsigned table_space = 0;       // of constant tables,
  unsigned stack_space = 0;       // of stack memory,
  unsigned sizes_space = 0;       // and of an open kernel's table of sizes
  int buffer_alignment = 1;       // bytes, of every buffer that a kernel is given; 1: that of its elements
  bool small_code = false;        // the evaluator looks for the shortest form of a load, which compiles sooner
  bool reads_between = false;     // loads of every second to fourth element read those between, too, and choose lanes
  bool llvm_bf16 = false;         // LLVM converts between f32 and bf16 (otherwise integer arithmetic does)
  std::int64_t item_operations =
      16384;  // elementary operations that a work item of kernel_emitter::parallel should hold

  // Callbacks at both ends of a stage's function: open_stage sets the emitter's work items, close_stage completes the
  // launch.
  void (*open_stage)(kernel_emitter&) = nullptr;
  void (*close_stage)(kernel_emitter&) = nullptr;
  // Emits stages that fill a buffer with a value of the fusion (kernel_emitter::materialize).
  void (*pointwise_into)(kernel_emitter&, kiln::value v, const buffer& destination, bool prepare) = nullptr;
  // Generates a libm function, given by its f64 name, on f32 or f64 values of any number of lanes. exp, log, erf and
  // tanh are among them. Names with the suffix ".fast" are approximations for f16 data.
  mlir::Value (*function)(code_builder&, std::string_view name, std::span<const mlir::Value> operands) = nullptr;
  // For a target with libm (`function` is null): the functions of f32 that it computes for all lanes at once. Returns
  // null for the others.
  mlir::Value (*vector_function)(code_builder&, std::string_view name, std::span<const mlir::Value> operands) = nullptr;
};

}  // namespace kiln::codegen
