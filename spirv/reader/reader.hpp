// Translates SPIR-V to LLVM IR with LLVM's IRBuilder. The result uses amdgcn's intrinsics and memory scopes, but the
// address spaces of the target that finalizes it. lowering.hpp converts the rest to the target's own.
// Errors: error{corrupted} for an invalid module, error{unsupported} naming a capability, extension, instruction,
// intrinsic, built-in variable or recursion that is not supported. It never crashes: what the validator accepts is
// checked against LLVM's types, and the result has passed LLVM's verifier. Any thread may call; the module belongs to
// the caller and its context.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace kiln::spirv {

// LLVM's address spaces for SPIR-V's storage classes.
struct address_spaces {
  unsigned generic = 0, global = 1, workgroup = 3, constant = 4, function = 5;
};
inline constexpr address_spaces amdgpu_spaces{0, 1, 3, 4, 5}, nvidia_spaces{0, 1, 3, 4, 0}, host_spaces{0, 0, 0, 0, 0};

struct read_options {
  address_spaces spaces;
  const char* triple = "amdgcn-amd-amdhsa";
};

// Attribute that marks global variables in workgroup memory, because the host has a single address space.
inline constexpr char workgroup_attribute[] = "kiln-workgroup";

// Prefix of math functions for which LLVM has no intrinsic. They are declared as kiln.math.NAME.TYPE ("erf.f32").
inline constexpr char math_prefix[] = "kiln.math.";

// Translates a module. Every function except the entry points is internal. Workgroup variables without a known size
// (dynamic shared memory) stay declarations.
std::unique_ptr<llvm::Module> read(std::span<const std::byte> module, llvm::LLVMContext& context,
                                   const read_options& options);

}  // namespace kiln::spirv
