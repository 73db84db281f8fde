#!/usr/bin/env bash
# Installs the runtime into a scratch prefix, moves it, and builds and runs a program against it: by find_package and by pkg-config.
#   install_test.sh CMAKE BUILD_FOLDER CONSUMER_FOLDER COMPILER [LINK_FLAGS]
# LINK_FLAGS are those of the build: a program that uses a library with a sanitizer needs the sanitizer's runtime first, and
# that of the build's own COMPILER. Without them the system's compiler is used, as users do.
set -euo pipefail
cmake=$1 build=$2 consumer=$3 flags=${5:-} compiler=cc
[ -z "$flags" ] || compiler=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for component in runtime dev; do
  "$cmake" --install "$build" --component $component --prefix "$folder/installed" >/dev/null
done
mv "$folder/installed" "$folder/moved"
library=$(find "$folder/moved" -name 'libkiln_runtime.so.0')
if readelf -d "$library" | grep -E 'NEEDED.*(LLVM|MLIR|clang)'; then
  echo "the runtime needs a compiler" && exit 1
fi
"$cmake" -S "$consumer" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/moved" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$compiler" \
  -DCMAKE_EXE_LINKER_FLAGS="$flags" >/dev/null
"$cmake" --build "$folder/build" >/dev/null
"$folder/build/consumer"
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(dirname "$(find "$folder/moved" -name kiln-runtime.pc)")
  # shellcheck disable=SC2046  # several words
  "$compiler" -o "$folder/by_pkg_config" "$consumer/consumer.c" $flags $(pkg-config --cflags --libs kiln-runtime)
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir kiln-runtime) "$folder/by_pkg_config"
else
  echo "pkg-config is not here: not tried"
fi
