// What differs between the targets that the shared code builder, evaluator and kernel emitter write code for: a CPU,
// whose stages are loops over a range of work items, and GPUs, whose stages are grids of threads. One constant object
// per target; plain data.
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
  bool llvm_bf16 = false;         // LLVM converts between f32 and bf16 (otherwise integer arithmetic does)
  std::int64_t item_operations =
      16384;  // elementary operations that a work item of kernel_emitter::parallel should hold

  // The function of a stage and its two ends: open sets the emitter's work items, close adds what the launch needs.
  void (*open_stage)(kernel_emitter&) = nullptr;
  void (*close_stage)(kernel_emitter&) = nullptr;
  // Stages that fill a buffer with a value of the fusion (kernel_emitter::materialize).
  void (*pointwise_into)(kernel_emitter&, kiln::value v, const buffer& destination, bool prepare) = nullptr;
  // libm's functions by their f64 names, exp, log, erf and tanh among them, on f32 or f64 values of any number of
  // lanes; "exp.fast" and the like are for f16 data.
  mlir::Value (*function)(code_builder&, std::string_view name, std::span<const mlir::Value> operands) = nullptr;
};

}  // namespace kiln::codegen
