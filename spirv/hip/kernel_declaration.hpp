// Information about a source's kernels that LLVM IR no longer contains: their names as written, and the types of their
// parameters. It is read from Clang's syntax tree and holds no references to it. Includes Clang headers: for this
// folder's .cpp files only.
#pragma once

#include <clang/AST/ASTContext.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/element_type.hpp"
#include "spirv/hip/compiled_source.hpp"

namespace kiln::spirv {

// The tensors that a pointer parameter accepts: those of one element type (float, double, __half, bfloat16), of any
// type with the same number of bits (integers), or of any type (char, void, structs).
struct pointee {
  std::optional<element_type> type;
  int bits = 0;
  bool is_constant = false;
};

struct declared_parameter {
  kernel_parameter kind = kernel_parameter::other;
  std::string written;  // "const float *"
  pointee to = {};      // for a pointer
};

struct kernel_declaration {
  std::string symbol;  // mangled
  std::string name;    // "ns::sort_rows<float, 4>"
  std::string base;    // "ns::sort_rows"
  // As Clang prints them, without blanks: "long", "true", "mode::fast".
  std::vector<std::string> template_arguments;
  std::vector<declared_parameter> parameters;
};

// Returns the kernels with a body, including instantiations, in source order.
std::vector<kernel_declaration> declared_kernels(clang::ASTContext& context);

// Returns the kernels that a launch may refer to as `written`: "k", "ns::k<int64_t, 3>", "k<>". Trailing template
// arguments may be omitted.
std::vector<const kernel_declaration*> kernels_called(std::string_view written,
                                                      const std::vector<kernel_declaration>& kernels,
                                                      clang::ASTContext& context);

}  // namespace kiln::spirv
