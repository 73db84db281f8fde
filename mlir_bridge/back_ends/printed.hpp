// The text of what LLVM and MLIR print, for finalize_trace and fingerprints. Internal to mlir_bridge.
#pragma once

#include <string>

#include "llvm/Support/raw_ostream.h"

namespace kiln {

// Returns the text that `print` writes to an llvm::raw_ostream.
template <class Printable>
std::string printed(Printable print) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  print(stream);
  return text;
}

}  // namespace kiln
