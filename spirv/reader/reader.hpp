// SPIR-V → LLVM IR (LLVM's builder emits). The result is in the terms of amdgcn (its intrinsics, its memory scopes) but
// in the address spaces of the target that finalizes it; lowering.hpp turns the rest into the target's own.
//
// Errors: error{corrupted} for what is no valid module, error{unsupported} naming what the reader does not know: a
// capability, an extension, an instruction, an intrinsic, a built-in variable, recursion. Never a crash: what the
// validator lets through is checked against LLVM's types, and LLVM's verifier has passed over the result. Any thread;
// the module belongs to the caller and its context.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace kiln::spirv {

// LLVM's numbers for SPIR-V's storage classes.
struct address_spaces {
  unsigned generic = 0, global = 1, workgroup = 3, constant = 4, function = 5;
};
inline constexpr address_spaces amdgpu_spaces{0, 1, 3, 4, 5}, nvidia_spaces{0, 1, 3, 4, 0}, host_spaces{0, 0, 0, 0, 0};

struct read_options {
  address_spaces spaces;
  const char* triple = "amdgcn-amd-amdhsa";
};

// On global variables in the memory of a workgroup, which the host's single address space does not tell from others.
inline constexpr char workgroup_attribute[] = "kiln-workgroup";

// A function of a target's mathematics library that LLVM has no intrinsic for is declared as kiln.math.NAME.TYPE
// ("erf.f32").
inline constexpr char math_prefix[] = "kiln.math.";

// Every function but the entry points is internal. Workgroup variables without a known size (dynamic shared memory)
// stay declarations.
std::unique_ptr<llvm::Module> read(std::span<const std::byte> module, llvm::LLVMContext& context,
                                   const read_options& options);

}  // namespace kiln::spirv
