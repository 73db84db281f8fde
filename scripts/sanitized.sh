#!/usr/bin/env bash
# The tests of what reads bytes from outside, under sanitizers: frames and cache entries, signatures and keys, Redis and web servers, the farm.
# What needs LLVM is left out, so that it is built in minutes; the readers of ONNX, SPIR-V and kernels have fuzz targets (test/fuzz).
#   scripts/sanitized.sh [asan|tsan]      AddressSanitizer, LeakSanitizer and UBSan (default), or ThreadSanitizer for the cache and the farm
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-asan}
case $preset in
  asan) programs=(test_ir_container test_ir_trust test_jit_cache test_jit_remote) ;;
  tsan) programs=(test_jit_cache test_jit_remote) ;;
  *) echo "usage: scripts/sanitized.sh [asan|tsan]" >&2; exit 2 ;;
esac
scripts/build.sh "$preset" "${programs[@]}"
pattern=$(IFS='|'; echo "^(${programs[*]})$")
ctest --preset "$preset" -R "$pattern"
