#!/usr/bin/env bash
# Builds targets of the last commit twice, in two folders with names of different lengths, one after the other and without
# ccache, and compares what they made byte by byte.
#   scripts/reproducible.sh [TARGET...]     default: onnxruntime_providers_kiln, a small part of a release
# Exits with 1 if two files differ, and shows the texts that only one of them has.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=("${@:-onnxruntime_providers_kiln}")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH CCACHE_DISABLE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=$(realpath build/python)
for folder in a another_name; do
  build=$work/$folder/build/out
  mkdir -p "$work/$folder/build" "$work/made/$folder"
  git archive HEAD | tar x -C "$work/$folder"
  ln -s "$python" "$work/$folder/build/python"
  # Search paths as installed files have them: the build's own name its folder.
  (cd "$work/$folder" && cmake --preset release -B "$build" -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON &&
    cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}") >"$work/log" 2>&1 || { tail -20 "$work/log" >&2 && exit 1; }
  for file in "$build"/lib/* "$build"/tools/*; do
    [ -f "$file" ] && [ -x "$file" ] && [ ! -L "$file" ] || continue
    strip --strip-unneeded -o "$work/made/$folder/$(basename "$file")" "$file"
  done
done
cd "$work/made/a"
[ -n "$(ls)" ] || { echo "reproducible: error: ${targets[*]}: no program and no library was made" >&2 && exit 1; }
differ=0
for file in *; do
  if cmp -s "$file" "../another_name/$file"; then
    echo "same      $file, $(stat -c %s "$file") bytes, $(sha256sum "$file" | cut -c1-16)"
  else
    echo "differs   $file: $(cmp "$file" "../another_name/$file" || true)"
    diff <(strings "$file" | sort -u) <(strings "../another_name/$file" | sort -u) | head -20 || true
    differ=1
  fi
done
exit $differ
