// The KILN_ macros of a source (spirv/device/kiln_operator.h), read while Clang preprocesses it. Clang headers: for
// this folder's .cpp files only.
#pragma once

#include <clang/Basic/SourceLocation.h>
#include <clang/Frontend/CompilerInstance.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <vector>

#include "spirv/hip/compiled_source.hpp"
#include "spirv/hip/kernel_declaration.hpp"

namespace kiln::spirv {

// Text of a macro's argument, and where each part of it stands.
struct macro_text {
  std::string text;
  std::map<std::size_t, clang::SourceLocation> places;  // offset in the text → token
  clang::SourceLocation at(std::size_t offset) const;
};

// An operator as declared, with the places that later messages point at.
struct declared_operator {
  struct launch_source {
    macro_text kernel;
    std::vector<macro_text> arguments;
  };
  object result;
  std::vector<launch_source> launches;  // of result.launches
  clang::SourceLocation at;
};

// Registers itself with the compiler's preprocessor; `operators` outlives the run. Mistakes become errors of the
// compiler's diagnostics.
void collect_operators(clang::CompilerInstance& compiler, std::vector<declared_operator>& operators);

// An error of the source at that place.
void report(clang::DiagnosticsEngine& diagnostics, clang::SourceLocation at, const std::string& what);

// Gives every launch its symbol and its parameters their types, by the kernels that the source has, and every operator
// the requirement that its tensors are what the kernels' pointers point at (bind_kernels.cpp).
void bind_kernels(clang::CompilerInstance& compiler, std::vector<declared_operator>& operators,
                  const std::vector<hip_kernel>& kernels, const std::vector<kernel_declaration>& declarations);

}  // namespace kiln::spirv
