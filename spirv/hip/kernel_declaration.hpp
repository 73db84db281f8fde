// What a source says of its kernels that LLVM IR no longer knows: their names as one writes them, and what their
// parameters are. Read from Clang's syntax tree, which outlives none of this. Clang headers: for this folder's .cpp
// files only.
#pragma once

#include <clang/AST/ASTContext.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/element_type.hpp"
#include "spirv/hip/compiled_source.hpp"

namespace kiln::spirv {

// What a pointer may point at: tensors of one type (float, double, __half, bfloat16), of any type whose elements have
// as many bits (integers), or of any type (char, void, structs).
struct pointee {
  std::optional<element_type> type;
  int bits = 0;
  bool is_constant = false;
};

struct declared_parameter {
  kernel_parameter kind = kernel_parameter::other;
  std::string written;  // "const float *"
  pointee to = {};      // of a pointer
};

struct kernel_declaration {
  std::string symbol;                           // mangled
  std::string name;                             // "ns::sort_rows<float, 4>"
  std::string base;                             // "ns::sort_rows"
  std::vector<std::string> template_arguments;  // as Clang prints them, without blanks: "long", "true", "mode::fast"
  std::vector<declared_parameter> parameters;
};

// Those with a body, instantiations included; in the order of the source.
std::vector<kernel_declaration> declared_kernels(clang::ASTContext& context);

// The kernels that a launch means by `written`: "k", "ns::k<int64_t, 3>", "k<>". Template arguments at the end may be
// left out.
std::vector<const kernel_declaration*> kernels_called(std::string_view written,
                                                      const std::vector<kernel_declaration>& kernels,
                                                      clang::ASTContext& context);

}  // namespace kiln::spirv
