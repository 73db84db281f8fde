// A kind of kernel: an operation that a kernel is built around (its anchor), what fusion may join to it, and what
// generates its code. Each folder beside this file holds one kind, or a few that share their code, and registers it
// with one row in kind.cpp (docs/add_a_kernel.md). This header needs no MLIR.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  // Whether the functions above compute inner anchors, or call kernel_emitter::emit_inner_anchors(). Otherwise that is
  // called before them.
  bool takes_inner = false;
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

// The anchors of a fusion. Besides `own`, around which the kernel is built, there may be inner ones
// (aot/kernels/joined_anchors.hpp). Normalizations of a product's operand and products that are multiplied with another
// one are read by this kernel only. Updates of caches, of which there are two, are outputs of the kernel: another
// update or an attention follows them. A generator that can computes inner anchors in the same launch; all others get
// them from memory.
struct anchors {
  const instruction* own = nullptr;       // the last one; null where the fusion has none
  std::vector<const instruction*> inner;  // in their order
};

// A convolution whose result another anchor normalizes (ir/normalized_window.hpp) belongs to that one and is not
// listed. Throws error{internal} if there are more anchors than kernel formation joins.
anchors find_anchors(const module& fusion, std::string_view symbol);

}  // namespace kiln
