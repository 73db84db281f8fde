#!/usr/bin/env bash
# Compares what is installed with the lists in packaging/files: check_files.sh BUILD_FOLDER installs each component of the
# build into a scratch folder; check_files.sh --packages FOLDER reads the .deb files of a folder. Lists name files under the
# prefix; @lib@ and @version@ stand for the folder of libraries and the version, an extension's tag is left out,
# and CMake's file of targets counts as that of the build type Release, from which packages are made.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/^project(kiln VERSION \([0-9.]*\).*/\1/p' "$here/../CMakeLists.txt")
declare -A component=([kiln]=command [libkiln-dev]=dev [libkiln-runtime0]=runtime [libkiln0]=compiler [python3-kiln]=python
  [onnxruntime-ep-kiln]=onnxruntime)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0
for package in "${!component[@]}"; do
  if [ "$1" = --packages ]; then
    dpkg-deb --fsys-tarfile "$2/${package}_$version-1_$(dpkg --print-architecture).deb" | tar t | sed 's#^\./usr/##' >"$scratch/all"
  else
    cmake --install "$1" --component "${component[$package]}" --prefix "$scratch/$package" >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
    (cd "$scratch/$package" && find . ! -type d) | sed 's#^\./##' >"$scratch/all"
  fi
  grep '[^/]$' "$scratch/all" | sed -E "s#^lib(/[^/]*-linux-gnu|64)?/(cmake|pkgconfig|lib[^/]*\.so|kiln-compile-worker)#@lib@/\2#; s#\.cpython-[^/]*-linux-gnu##; s#kiln-targets-[a-z]+\.cmake#kiln-targets-release.cmake#; s#${version//./\\.}#@version@#" | LC_ALL=C sort >"$scratch/found"
  LC_ALL=C sort "$here/files/$package" | diff --label "packaging/files/$package" --label "$package as built" -u - "$scratch/found" || bad=1
done
[ $bad = 0 ] && echo "six packages have the files that packaging/files lists"
exit $bad
