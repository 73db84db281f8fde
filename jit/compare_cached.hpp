// Verifying a cache against the compiler: every kernel of a program that the cache has is compiled again, and the bytes
// are compared.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "jit/compile_bytecode.hpp"

namespace kiln {

// A kernel whose cached bytes are not those that this compiler makes. Hashes of the native kernels, hex.
struct cache_mismatch {
  std::string symbol, key, cached, compiled;
};

struct cache_comparison {
  std::size_t compared = 0, absent = 0;    // absent: not in the cache, and not compiled
  std::vector<cache_mismatch> mismatches;  // in the program's order
};

// `options` as for compile_bytecode, with a cache. With `replace` what was compiled takes the place of what differs, in
// the folder and the remote layer. Throws what compile_bytecode throws where a kernel cannot be compiled.
cache_comparison compare_with_cache(const program& bound, const jit_options& options, bool replace);

}  // namespace kiln
