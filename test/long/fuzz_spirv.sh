#!/usr/bin/env bash
# Ten minutes of damaged SPIR-V against the reader, under AddressSanitizer and UBSan: refusal or a module, never a crash.
#   test/long/fuzz_spirv.sh [SECONDS] [FOLDER]      default: 600 seconds, build/fuzz_spirv
# The corpus is test/spirv/reader/corpus, compiled with clang-22 and llc-22. FUZZ_SEED begins elsewhere.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600} folder=${2:-build/fuzz_spirv}
prefix=$(llvm-config-22 --prefix)
mkdir -p "$folder"
for source in test/spirv/reader/corpus/*.hip; do
  name=$folder/$(basename "$source" .hip)
  "$prefix/bin/clang++" -cc1 -triple spirv64-amd-amdhsa -fcuda-is-device -x hip -std=c++20 -fdeclspec -O2 -ffp-contract=on -I spirv/device -emit-llvm -o "$name.ll" "$source"
  "$prefix/bin/llc" -mtriple=spirv64-amd-amdhsa --spirv-ext=all -filetype=obj "$name.ll" -o "$name.spv"
done
objects=()
for source in spirv/reader/*.cpp test/long/fuzz_spirv.cpp; do
  object=$folder/$(basename "$source" .cpp).o
  objects+=("$object")
  [[ $object -nt $source ]] || g++ -std=c++20 -O1 -g1 -fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer -DFMT_HEADER_ONLY -I. -isystem "$prefix/include" -c "$source" -o "$object"
done
g++ -fsanitize=address,undefined "${objects[@]}" -o "$folder/fuzz_spirv" -L"$prefix/lib" -lLLVM-22 -l:libSPIRV-Tools.a -Wl,-rpath,"$prefix/lib"
ASAN_OPTIONS=detect_leaks=0:allow_user_segv_handler=1 "$folder/fuzz_spirv" "$seconds" "$folder"/*.spv
