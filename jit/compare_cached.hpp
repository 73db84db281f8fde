// Verifies a cache against the compiler: compiles every kernel of a program that is in the cache again, and compares
// the bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "jit/compile_bytecode.hpp"

namespace kiln {

// A kernel whose cached bytes differ from those that this compiler produces. `cached` and `compiled` are hex hashes of
// the native kernels.
struct cache_mismatch {
  std::string symbol, key, cached, compiled;
};

struct cache_comparison {
  std::size_t compared = 0, absent = 0;    // absent: not in the cache, and not compiled
  std::vector<cache_mismatch> mismatches;  // in the program's order
};

// `options` as for compile_bytecode; the cache must not be null. With `replace`, differing entries are replaced by the
// compiled kernels, in the folder and in the remote layer. Throws what compile_bytecode throws if a kernel cannot be
// compiled.
cache_comparison compare_with_cache(const program& bound, const jit_options& options, bool replace);

}  // namespace kiln
