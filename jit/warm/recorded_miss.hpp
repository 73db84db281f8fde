// A kernel that a machine had to compile, written down so that another one can compile it ahead of time: one JSON
// object per line of a log
// (`kiln run --record-misses LOG`, `kiln warm --replay LOG`). The target is recorded as its whole row, since "native"
// means another processor elsewhere.
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
  std::string payload;  // hex hash of the portable kernel, which a .kiln file holds
  std::vector<shape> inputs, outputs;
  target_row target;
  std::string driver;  // of a device whose driver compiles
  std::string key;     // hex hash of the cache key that missed
  std::string file;    // where the kernel was found: a hint
};

std::string write_miss(const recorded_miss& miss);
// Throws error{corrupted} for a line that is none; error{unsupported} for a shape or target that this version does not
// know.
recorded_miss read_miss(std::string_view line);

// The misses of one compile_bytecode(), by its report. Nothing where there are none.
std::vector<recorded_miss> misses_of(const program& bound, const jit_options& options, const jit_report& report,
                                     const std::string& file);
// What the options' cache does not have, for a program that was not compiled since it had to be cached.
std::vector<recorded_miss> absent_kernels(const program& bound, const jit_options& options, const std::string& file);

// Adds lines to the log in one write, so that processes may share it. Throws error{io}.
void append_misses(const std::filesystem::path& log, const std::vector<recorded_miss>& misses);
// All misses of a log, each key once. Throws error{missing_file} and what read_miss throws, naming the line.
std::vector<recorded_miss> read_misses(const std::filesystem::path& log);

}  // namespace kiln
