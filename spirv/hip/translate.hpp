// Translates LLVM IR with the triple spirv64-amd-amdhsa to SPIR-V with LLVM's own back end. Includes LLVM headers: for
// this folder's .cpp files only.
// The back end's ModuleAnalysisInfo is static, so it carries labels over from one module to the next, and fatal errors
// abort the process. Therefore each module is translated in a fresh forked copy of this process, and an abort of the
// copy becomes an error here.
#pragma once

#include <llvm/IR/Module.h>

#include <cstddef>
#include <string>
#include <vector>

namespace kiln::spirv {

inline constexpr const char* spirv_triple = "spirv64-amd-amdhsa";

// Call this before anything is compiled for the triple. Any thread may call it, any number of times.
void initialize_back_end();

bool is_kernel(const llvm::Function& f);

// Returns the SPIR-V of the module with the given kernels, or with all kernels if `symbols` is null. Throws
// error{unsupported} with the back end's message if it fails.
std::vector<std::byte> translate(const llvm::Module& source, const std::vector<std::string>* symbols);

}  // namespace kiln::spirv
