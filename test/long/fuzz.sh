#!/usr/bin/env bash
# The fuzz targets of test/fuzz under libFuzzer, AddressSanitizer and UBSan, for as long as you like.
#   test/long/fuzz.sh [SECONDS] [FOLDER] [TARGET...]      default: 600 seconds for each target, build/fuzz_runs, all targets
# What libFuzzer keeps stays in FOLDER/TARGET for the next run. An input that fails is FOLDER/TARGET-crash-*; try it again with
# build/fuzz/test/fuzz/fuzz_TARGET FILE. FUZZ_COVERAGE=1 also prints the lines of Kiln that the kept inputs reach (a build of its own).
# FUZZ_JOBS targets run side by side (default 2).
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600} folder=${2:-build/fuzz_runs}
shift $(($# < 2 ? $# : 2))
cmake --preset fuzz >/dev/null
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for corpus in test/fuzz/corpus/*; do targets+=("$(basename "$corpus")"); done
fi
cmake --build build/fuzz --target "${targets[@]/#/fuzz_}" >/dev/null
mkdir -p "$folder"
export seconds folder
one() {
  mkdir -p "$folder/$1"
  status=0
  ASAN_OPTIONS=detect_container_overflow=0 "build/fuzz/test/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$folder/$1-" "$folder/$1" "test/fuzz/corpus/$1" >"$folder/$1.log" 2>&1 || status=$?
  echo "$1: $(grep -oP 'number_of_executed_units: +\K.*' "$folder/$1.log" || echo 0) executions, $(find "$folder/$1" -type f | wc -l) inputs kept, exit $status"
  [ $status = 0 ] || { grep -E 'ERROR|SUMMARY|broken promise|internal error|runtime error' "$folder/$1.log" | head -5; return 1; }
}
export -f one
result=0
printf '%s\n' "${targets[@]}" | xargs -P "${FUZZ_JOBS:-2}" -I{} bash -euc 'one {}' || result=1
if [ -n "${FUZZ_COVERAGE:-}" ]; then
  flags="-fprofile-instr-generate -fcoverage-mapping"
  cmake --preset fuzz -B build/fuzz_coverage -DCMAKE_CXX_FLAGS="-fsanitize=fuzzer-no-link $flags" -DCMAKE_EXE_LINKER_FLAGS="$flags" >/dev/null
  cmake --build build/fuzz_coverage --target "${targets[@]/#/fuzz_}" >/dev/null
  for target in "${targets[@]}"; do
    LLVM_PROFILE_FILE="$folder/$target.profraw" "build/fuzz_coverage/test/fuzz/fuzz_$target" -runs=0 "$folder/$target" "test/fuzz/corpus/$target" >/dev/null 2>&1
    llvm-profdata-22 merge -sparse "$folder/$target.profraw" -o "$folder/$target.profdata"
    echo "== $target"
    llvm-cov-22 report "build/fuzz_coverage/test/fuzz/fuzz_$target" -instr-profile="$folder/$target.profdata" \
      --ignore-filename-regex='(_generated\.h|/third_party/|/usr/|/test/)' | awk 'NR == 1 || /TOTAL/ || $10 != "0.00%"'
  done
fi
exit $result
