// The result of compiling a HIP C++ source: its kernels and operators in SPIR-V, or the errors in the source. Plain
// data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/error.hpp"
#include "spirv/object.hpp"

namespace kiln::spirv {

// An error{invalid_model}. what() is one line with the first error; diagnostics() is Clang's complete output with file,
// line and caret.
class source_error : public error {
 public:
  source_error(std::string summary, std::string diagnostics)
      : error(error_kind::invalid_model, std::move(summary)), diagnostics_(std::move(diagnostics)) {}
  const std::string& diagnostics() const { return diagnostics_; }

 private:
  std::string diagnostics_;
};

enum class kernel_parameter : std::uint8_t { pointer, i32, i64, f32, f64, other };

struct hip_kernel {
  std::string symbol;  // mangled
  std::string name;    // as written in the source: "relu6", "sort_rows<float>"
  std::vector<kernel_parameter> parameters;
  // By parameter: a pointer through which nothing is written, as far as LLVM can tell.
  std::vector<bool> reads_only;
  std::uint32_t max_threads = 1024;  // __launch_bounds__
};

struct compiled_source {
  std::vector<std::byte> words;     // SPIR-V with every kernel of the source
  std::vector<hip_kernel> kernels;  // sorted by symbol
  // One for each KILN_OPERATOR, in order; each contains only its own kernels.
  std::vector<object> operators;
  std::string warnings;  // Clang's output; empty if there are none
  // Files that the source includes, relative to the include root, sorted.
  std::vector<std::string> included;
};

}  // namespace kiln::spirv
