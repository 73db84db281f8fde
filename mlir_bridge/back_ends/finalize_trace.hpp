// Intermediate texts and times of one finalization, for `kiln` commands that print them. The texts are large, so they
// are filled only on request.
#pragma once

#include <string>

namespace kiln {

struct finalize_trace {
  // Set by the caller: whether to fill the three texts.
  bool want_texts = false;
  // The MLIR that the generator made.
  std::string mlir;
  // The LLVM IR after optimization.
  std::string llvm_ir;
  std::string assembly;
  double generate_ms = 0, lower_ms = 0, optimize_ms = 0, codegen_ms = 0;
};

}  // namespace kiln
