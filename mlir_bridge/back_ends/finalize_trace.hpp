// What a finalizer did, for people: filled where the caller asks. Texts are large.
#pragma once

#include <string>

namespace kiln {

struct finalize_trace {
  bool want_texts = false;  // in: whether to fill the three texts
  std::string mlir;         // as generated
  std::string llvm_ir;      // after optimization
  std::string assembly;
  double generate_ms = 0, lower_ms = 0, optimize_ms = 0, codegen_ms = 0;
};

}  // namespace kiln
