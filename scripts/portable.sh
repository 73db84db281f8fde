#!/usr/bin/env bash
# One `kiln` executable with LLVM, MLIR and LLD inside (preset `portable`), for any x86-64 Linux with glibc 2.36 or later.
#   scripts/portable.sh [--no-xz] [BUILD_FOLDER]     default: build/portable; leaves BUILD_FOLDER/kiln and BUILD_FOLDER/kiln.xz
# Checks what it needs from the system, and that it compiles and runs a model in a root folder that holds nothing else. A second call rebuilds what changed.
set -euo pipefail
cd "$(dirname "$0")/.."
compress=yes
[[ ${1:-} == --no-xz ]] && compress=no && shift
build=${1:-build/portable}

scripts/setup.sh
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros} CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1
[ -f "$build/build.ninja" ] || cmake --preset portable -B "$build" >/dev/null
cmake --build "$build" --target kiln --parallel "${JOBS:-$(nproc)}"
strip --strip-all -o "$build/kiln.new" "$build/tools/kiln"
mv "$build/kiln.new" "$build/kiln"
kiln=$(realpath "$build/kiln")

needs=$(objdump -p "$kiln" | awk '$1 == "NEEDED" {print $2}' | sort | tr '\n' ' ')
glibc=$(objdump -T "$kiln" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
echo "needs     $needs(newest symbol $glibc)"
for library in $needs; do
  case $library in
    libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2) ;;
    *) echo "portable: error: it needs $library" >&2 && exit 1 ;;
  esac
done
if [[ $(printf '%s\nGLIBC_2.36\n' "$glibc" | sort -V | tail -1) != GLIBC_2.36 ]]; then
  echo "portable: error: it needs $glibc, newer than GLIBC_2.36" >&2 && exit 1
fi

# A root folder with the executable, the C library and a model; nothing else of this machine is visible in it.
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{lib64,lib/x86_64-linux-gnu,work,proc,tmp}
cp "$kiln" "$root/kiln"
cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
cp -L /lib/x86_64-linux-gnu/{libc.so.6,libm.so.6} "$root/lib/x86_64-linux-gnu/"
build/python/bin/python test/models/fill.py test/models/lstm_gru.onnx -o "$root/work/lstm_gru.onnx" >/dev/null
inside() {
  unshare --map-root-user --user --mount --pid --fork sh -c 'root=$1; shift; mount -t proc proc "$root/proc"; exec env -i HOME=/work /usr/sbin/chroot "$root" "$@"' sh "$root" "$@"
}
inside /kiln devices
inside /kiln compile /work/lstm_gru.onnx -o /work/model.kiln --quiet
inside /kiln run /work/model.kiln --quiet
inside /kiln verify /work/lstm_gru.onnx --quiet
echo "runs      devices, compile, run and verify in an empty root folder"

echo "size      $(stat -c %s "$kiln") bytes"
if [[ $compress == yes ]]; then
  xz -9 --threads=0 --keep --force --stdout "$kiln" >"$build/kiln.xz"
  size=$(stat -c %s "$build/kiln.xz")
  echo "with xz   $size bytes"
  if ((size >= 40000000)); then
    echo "portable: error: more than 40 MB" >&2 && exit 1
  fi
fi
