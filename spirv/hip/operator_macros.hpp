// Reads the KILN_ macros of a source (spirv/device/kiln_operator.h) while Clang preprocesses it. Includes Clang
// headers: for this folder's .cpp files only.
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

// The text of a macro's argument, with the source locations of its tokens.
struct macro_text {
  std::string text;
  std::map<std::size_t, clang::SourceLocation> places;  // offset in the text → location of the token
  clang::SourceLocation at(std::size_t offset) const;
};

// A declared operator, with source locations for later messages.
struct declared_operator {
  struct launch_source {
    macro_text kernel;
    std::vector<macro_text> arguments;
  };
  object result;
  std::vector<launch_source> launches;  // parallel to result.launches
  clang::SourceLocation at;
};

// Registers a callback with the compiler's preprocessor. `operators` must outlive the compilation. Mistakes are
// reported as errors in the compiler's diagnostics.
void collect_operators(clang::CompilerInstance& compiler, std::vector<declared_operator>& operators);

// Reports an error at a location in the source.
void report(clang::DiagnosticsEngine& diagnostics, clang::SourceLocation at, const std::string& what);

// Resolves each launch to a kernel of the source: sets its symbol and the types of its parameters. Adds to every
// operator the requirement that its tensors have the element types of the kernels' pointers (bind_kernels.cpp).
void bind_kernels(clang::CompilerInstance& compiler, std::vector<declared_operator>& operators,
                  const std::vector<hip_kernel>& kernels, const std::vector<kernel_declaration>& declarations);

}  // namespace kiln::spirv
