#!/usr/bin/env bash
# Damaged SPIR-V against the reader: libFuzzer under AddressSanitizer and UBSan. Refusal or a module, never a crash, a leak or a hang.
#   test/long/fuzz_spirv.sh [SECONDS] [FOLDER]      default: 600 seconds, build/fuzz_spirv; ctest runs 60
# With FUZZ_COVERAGE=1 it also prints the lines of the reader that the kept inputs reach (fuzz_table.py). The first inputs are test/spirv/reader/corpus and spirv/library, compiled with clang-22 and llc-22. What libFuzzer keeps stays in FOLDER/spirv for the next run; an
# input that fails is FOLDER/spirv-crash-*, tried again with `FOLDER/fuzz_spirv FOLDER/spirv-crash-...`. FUZZ_SEED begins elsewhere.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600} folder=${2:-build/fuzz_spirv}
prefix=$(llvm-config-22 --prefix)
export clang=$prefix/bin/clang++ llc=$prefix/bin/llc folder
export flags="-std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer -DFMT_HEADER_ONLY -I. -isystem $prefix/include"
[ -z "${FUZZ_COVERAGE:-}" ] || flags+=" -fprofile-instr-generate -fcoverage-mapping"
mkdir -p "$folder/seeds" "$folder/spirv"

seed() {
  name=$folder/seeds/$(basename "$1" .hip)
  "$clang" -cc1 -triple spirv64-amd-amdhsa -fcuda-is-device -x hip -std=c++20 -fdeclspec -O2 -ffp-contract=on -I spirv/device -emit-llvm -o - "$1" |
    "$llc" -mtriple=spirv64-amd-amdhsa --spirv-ext=all -filetype=obj -o "$name"
}
object() { "$clang" $flags -c "$1" -o "$folder/$(basename "$1" .cpp).o"; }
text() { spirv-as --target-env spv1.6 "$1" -o "$folder/seeds/$(basename "$1" .spvasm)"; }
export -f seed text object
printf '%s\0' test/spirv/reader/corpus/*.hip spirv/library/*.hip | xargs -0 -P2 -I{} bash -euc 'seed {}'
printf '%s\0' test/spirv/reader/corpus/*.spvasm | xargs -0 -I{} bash -euc 'text {}'
printf '%s\0' spirv/reader/*.cpp test/long/fuzz_spirv.cpp | xargs -0 -P2 -I{} bash -euc 'object {}'
"$clang" $flags "$folder"/*.o -o "$folder/fuzz_spirv" -L"$prefix/lib" -lLLVM-22 -l:libSPIRV-Tools.a -Wl,-rpath,"$prefix/lib"
export ASAN_OPTIONS=detect_container_overflow=0
status=0
LLVM_PROFILE_FILE=/dev/null "$folder/fuzz_spirv" -max_total_time="$seconds" -mutate_depth=1 -timeout=20 -rss_limit_mb=4096 -seed="${FUZZ_SEED:-1}" \
  -print_final_stats=1 -print_funcs=0 -artifact_prefix="$folder/spirv-" "$folder/spirv" "$folder/seeds" >"$folder/spirv.log" 2>&1 || status=$?
grep -v -E '^#[0-9]+.*(REDUCE|NEW|RELOAD)|# Uses:|Recommended dictionary' "$folder/spirv.log"
if [ $status = 0 ] && [ -n "${FUZZ_COVERAGE:-}" ]; then
  LLVM_PROFILE_FILE="$folder/spirv.profraw" "$folder/fuzz_spirv" -runs=0 "$folder/spirv" "$folder/seeds" >/dev/null 2>&1
  python3 test/long/fuzz_table.py "$folder" "$folder" spirv || status=1
fi
exit $status
