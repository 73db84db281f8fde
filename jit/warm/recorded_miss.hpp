// A cache miss, recorded so that another machine can compile the kernel ahead of time. A log has one JSON object per
// line (`kiln run --record-misses LOG`, `kiln warm --replay LOG`). The target is recorded as a whole row, because
// "native" is a different processor on another machine.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "jit/cache/kernel_key.hpp"
#include "jit/compile_bytecode.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

struct recorded_miss {
  std::string symbol;
  std::string payload;  // hex hash of the portable kernel in a .kiln file
  std::vector<shape> inputs, outputs;
  target_row target;
  std::string driver;  // version of the driver if it compiles, else empty
  std::string key;     // hex hash of the cache key that missed
  std::string file;    // path of the .kiln file, as a hint
};

std::string write_miss(const recorded_miss& miss);
// Throws error{corrupted} for a malformed line, error{unsupported} for an element type or target that this version does
// not know or defines differently.
recorded_miss read_miss(std::string_view line);

// The cache misses of one compile_bytecode() call, according to its report.
std::vector<recorded_miss> misses_of(const program& bound, const jit_options& options, const jit_report& report,
                                     const std::string& file);
// The kernels of `bound` that options.cache does not have. For a program that was not compiled because of
// only_if_cached.
std::vector<recorded_miss> absent_kernels(const program& bound, const jit_options& options, const std::string& file);

// Appends lines to the log in one write, so that several processes may share a log. Throws error{io}.
void append_misses(const std::filesystem::path& log, const std::vector<recorded_miss>& misses);
// All misses of a log, each key once. Throws error{missing_file}, and what read_miss throws with the line number.
std::vector<recorded_miss> read_misses(const std::filesystem::path& log);

}  // namespace kiln
