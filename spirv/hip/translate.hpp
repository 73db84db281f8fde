// LLVM IR of the triple spirv64-amd-amdhsa → SPIR-V by LLVM's own back end. LLVM headers: for this folder's .cpp files
// only.
//
// The back end keeps the labels of one module for the next (its ModuleAnalysisInfo is static), and ends the process
// where it gives up. So each module is translated in a forked copy of this process, which has never translated before
// and whose end is an error here.
#pragma once

#include <llvm/IR/Module.h>

#include <cstddef>
#include <string>
#include <vector>

namespace kiln::spirv {

inline constexpr const char* spirv_triple = "spirv64-amd-amdhsa";

// Once before anything is compiled for the triple; any thread, any number of times.
void initialize_back_end();

bool is_kernel(const llvm::Function& f);

// The SPIR-V of the module: of these kernels only, or of all where `symbols` is null. error{unsupported} with the back
// end's words where it gives up.
std::vector<std::byte> translate(const llvm::Module& source, const std::vector<std::string>* symbols);

}  // namespace kiln::spirv
