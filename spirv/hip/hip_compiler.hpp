// HIP C++ → amdgcnspirv: Clang as a library to LLVM IR, LLVM's own back end to SPIR-V, in a forked copy of this process
// (forked_copy.hpp). Needs no ROCm, no files beside the source (the device header is inside the program) and no device.
// The same source gives the same bytes, whatever its path. Any number of threads may compile; they take turns, since
// LLVM's SPIR-V back end keeps global state. Throws source_error for mistakes in the source, error{unsupported} for
// what portable kernels cannot have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

struct hip_options {
  std::vector<std::string> definitions = {};  // NAME or NAME=VALUE
  bool whole_module = true;                   // fill `words`
  std::string include_root = {};  // the folder that #include may read, with those below it; empty: the source's own
};

// `file` is the name for messages; `#include "..."` looks beside it, and reads nothing outside of
// hip_options::include_root.
compiled_source compile_hip(std::string_view source, const std::string& file, const hip_options& options = {});
// Reads the file. error{missing_file} where it cannot.
compiled_source compile_hip_file(const std::string& file, const hip_options& options = {});

// The device header's files, by name as they are included.
std::span<const std::pair<std::string_view, std::string_view>> device_headers();

}  // namespace kiln::spirv
