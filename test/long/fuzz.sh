#!/usr/bin/env bash
# The fuzz targets of test/fuzz under libFuzzer, AddressSanitizer and UBSan, for as long as you like.
#   test/long/fuzz.sh [SECONDS] [FOLDER] [TARGET...]      default: 600 seconds for each target, build/fuzz_runs, all targets
# What libFuzzer keeps stays in FOLDER/TARGET for the next run. An input that fails is FOLDER/TARGET-crash-*; try it again with
# build/fuzz/test/fuzz/fuzz_TARGET FILE. Prints a row for each target: executions, and with FUZZ_COVERAGE=1 the lines of the reader
# that the kept inputs reach (fuzz_table.py). FUZZ_JOBS targets run side by side (default 2). FUZZ_SEEDS is a folder of more inputs
# to begin with, FUZZ_SEEDS/TARGET/*, such as ONNX's node tests.
# Stack memory is not watched after functions return, which doubles to quadruples the speed; FUZZ_STACK=1 does.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600} folder=${2:-build/fuzz_runs}
shift $(($# < 2 ? $# : 2))
build=build/fuzz flags=()
if [ -n "${FUZZ_COVERAGE:-}" ]; then
  build=build/fuzz_coverage
  sanitizers="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr,function -fno-sanitize-recover=all -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS"
  flags=(-DCMAKE_CXX_FLAGS="$sanitizers -fprofile-instr-generate -fcoverage-mapping" -DCMAKE_EXE_LINKER_FLAGS="-fsanitize=address,undefined -fprofile-instr-generate")
fi
cmake --preset fuzz -B "$build" "${flags[@]}" >/dev/null
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for corpus in test/fuzz/corpus/*; do targets+=("$(basename "$corpus")"); done
fi
cmake --build "$build" --target "${targets[@]/#/fuzz_}" >/dev/null
mkdir -p "$folder"
ASAN_OPTIONS=detect_container_overflow=0:detect_stack_use_after_return=${FUZZ_STACK:-0}:malloc_context_size=6:quarantine_size_mb=8
export seconds folder build ASAN_OPTIONS
one() {
  mkdir -p "$folder/$1"
  status=0 seeds=("test/fuzz/corpus/$1")
  [ ! -d "${FUZZ_SEEDS:-/nowhere}/$1" ] || seeds+=("$FUZZ_SEEDS/$1")
  LLVM_PROFILE_FILE=/dev/null "$build/test/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=4096 -malloc_limit_mb=2048 -max_len=16384 -print_final_stats=1 \
    -artifact_prefix="$folder/$1-" "$folder/$1" "${seeds[@]}" >"$folder/$1.log" 2>&1 || status=$?
  [ $status = 0 ] || { echo "$1: exit $status"; grep -E 'ERROR|SUMMARY|broken promise|internal error|runtime error' "$folder/$1.log" | head -5; return 1; }
  [ -z "${FUZZ_COVERAGE:-}" ] || LLVM_PROFILE_FILE="$folder/$1.profraw" "$build/test/fuzz/fuzz_$1" -runs=0 "$folder/$1" "${seeds[@]}" >/dev/null 2>&1
}
export -f one
result=0
printf '%s\n' "${targets[@]}" | xargs -P "${FUZZ_JOBS:-2}" -I{} bash -euc 'one {}' || result=1
python3 test/long/fuzz_table.py "$build/test/fuzz" "$folder" "${targets[@]}" || result=1
exit $result
