// What compiling a HIP C++ source gives: its kernels and operators in SPIR-V, or the mistakes in it. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/error.hpp"
#include "spirv/object.hpp"

namespace kiln::spirv {

// error{invalid_model}: what() is one line, the first mistake; diagnostics() is Clang's text, with file, line and caret
// for each.
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
  std::string name;    // as written: "relu6", "sort_rows<float>"
  std::vector<kernel_parameter> parameters;
  std::vector<bool> reads_only;      // by parameter: a pointer that nothing is written through, as far as LLVM can see
  std::uint32_t max_threads = 1024;  // __launch_bounds__
};

struct compiled_source {
  std::vector<std::byte> words;       // SPIR-V with every kernel of the source
  std::vector<hip_kernel> kernels;    // sorted by symbol
  std::vector<object> operators;      // one for each KILN_OPERATOR, in order; each with only its own kernels
  std::string warnings;               // Clang's text, empty where there are none
  std::vector<std::string> included;  // files that the source includes, relative to the include root, sorted
};

}  // namespace kiln::spirv
