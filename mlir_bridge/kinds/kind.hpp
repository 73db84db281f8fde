// A kind of kernel: an operation that a kernel is built around (its anchor), what fusion may join to it, and what
// generates its code. Each folder beside this file holds one kind, or a few that share their code, and registers it
// with one row in kind.cpp (docs/add_a_kernel.md). This header needs no MLIR.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "ir/module.hpp"
#include "ir/open_form.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln {

// Emits complete stages that write every output of the fusion. Throws error{unsupported} naming what it cannot do.
struct kernel_generator {
  void (*emit)(codegen::kernel_emitter&) = nullptr;
  codegen::space_function space = codegen::default_only;  // its tuning parameters
  // The same for an open kernel (ir/native_kernel.hpp); null: the kind has none.
  void (*emit_open)(codegen::kernel_emitter&) = nullptr;
  bool (*opens)(const instruction& anchor) = nullptr;  // which anchors have an open kernel; null: all
};

struct kernel_kind {
  std::string_view operation;  // the anchor's name; "" for fusions without an anchor

  // For kernel formation (aot/kernels/traits.hpp).
  bool contraction = false;  // loads are reused in registers: only what keeps or stretches indices joins the epilogue
  bool epilogue = false;     // elementwise operations on the result may run inside the kernel
  // How often the anchor reads each element of an operand: 0 where the operand must lie in memory. The last entry
  // stands for all that follow.
  std::array<double, 3> operand_reads{};

  kernel_generator cpu, gpu;
};

// All kinds. CMake makes the list from the folders when it configures the build.
std::span<const kernel_kind> kernel_kinds();

// Null for an operation that anchors no kernel.
const kernel_kind* find_kind(std::string_view operation);

// Returns true if the fusion can be compiled as an open kernel (one kernel for all values of its open dims) for such
// processors. If not, sets `missing`, unless it is null, to the operation that has no open form.
bool has_open_form(const module& fusion, processor on, std::string* missing = nullptr);

// The fusion's anchor; null where it has none. Throws error{internal} where there are two. A convolution whose result
// another anchor normalizes (ir/normalized_window.hpp) belongs to that one.
const instruction* find_anchor(const module& fusion, std::string_view symbol);

}  // namespace kiln
