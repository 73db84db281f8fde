#!/usr/bin/env bash
# Damaged SPIR-V against the reader: libFuzzer under AddressSanitizer and UBSan. Refusal or a module, never a crash, a leak or a hang.
#   test/long/fuzz_spirv.sh [SECONDS] [FOLDER]      default: 600 seconds, build/fuzz_spirv; ctest runs 60
# The first inputs are test/spirv/reader/corpus and spirv/library, compiled with clang-22 and llc-22. What libFuzzer keeps stays in FOLDER/found for the next run; an
# input that fails is FOLDER/crash-*, tried again with `FOLDER/fuzz_spirv FOLDER/crash-...`. FUZZ_SEED begins elsewhere.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600} folder=${2:-build/fuzz_spirv}
prefix=$(llvm-config-22 --prefix)
export clang=$prefix/bin/clang++ llc=$prefix/bin/llc folder
export flags="-std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer -DFMT_HEADER_ONLY -I. -isystem $prefix/include"
mkdir -p "$folder/seeds" "$folder/found"

seed() {
  name=$folder/seeds/$(basename "$1" .hip)
  "$clang" -cc1 -triple spirv64-amd-amdhsa -fcuda-is-device -x hip -std=c++20 -fdeclspec -O2 -ffp-contract=on -I spirv/device -emit-llvm -o - "$1" |
    "$llc" -mtriple=spirv64-amd-amdhsa --spirv-ext=all -filetype=obj -o "$name"
}
object() { "$clang" $flags -c "$1" -o "$folder/$(basename "$1" .cpp).o"; }
export -f seed object
printf '%s\0' test/spirv/reader/corpus/*.hip spirv/library/*.hip | xargs -0 -P2 -I{} bash -euc 'seed {}'
printf '%s\0' spirv/reader/*.cpp test/long/fuzz_spirv.cpp | xargs -0 -P2 -I{} bash -euc 'object {}'
"$clang" $flags "$folder"/*.o -o "$folder/fuzz_spirv" -L"$prefix/lib" -lLLVM-22 -l:libSPIRV-Tools.a -Wl,-rpath,"$prefix/lib"
ASAN_OPTIONS=detect_container_overflow=0 "$folder/fuzz_spirv" -max_total_time="$seconds" -mutate_depth=1 -timeout=20 -rss_limit_mb=4096 -seed="${FUZZ_SEED:-1}" \
  -print_final_stats=1 -print_funcs=0 -artifact_prefix="$folder/" "$folder/found" "$folder/seeds" 2>&1 | grep -v -E '^#[0-9]+.*(REDUCE|NEW|RELOAD)|# Uses:|Recommended dictionary'
