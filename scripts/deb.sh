#!/usr/bin/env bash
# Debian packages of everything: the command, the two libraries, the C header, the Python package and the plug-in for ONNX
# Runtime (cmake/packages.cmake).
#   scripts/deb.sh [--built] [BUILD_FOLDER [OUTPUT_FOLDER]]     default: build/release (made if it is not there), build/packages
# --built: the build folder is complete, and nothing is compiled. KILN_DEBIAN_ROOT: a root folder with Debian's base system,
# of which a copy is used, instead of a new one.
# Checks the packages with lintian and their files with packaging/files, installs them in a root folder with nothing else
# than Debian's base system and tries them there (packaging/try.sh). Needs root and Debian's archive; lintian and
# mmdebstrap are installed if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
built=no
[[ ${1:-} == --built ]] && built=yes && shift
build=$(realpath -m "${1:-build/release}")
output=$(realpath -m "${2:-build/packages}")
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
[ $built = yes ] || scripts/setup.sh
missing=()
for tool in lintian mmdebstrap; do command -v $tool >/dev/null || missing+=("$tool"); done
((${#missing[@]} == 0)) || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

logged() { "$@" >"$work/log" 2>&1 || { tail -20 "$work/log" >&2 && exit 1; }; }
[ -f "$build/build.ninja" ] || logged cmake --preset release -B "$build"
logged cmake -B "$build" -DCMAKE_INSTALL_PREFIX=/usr
[ $built = yes ] ||
  cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target kiln libkiln libkiln_runtime kiln_compile_worker kiln_python onnxruntime_providers_kiln kiln_pages
rm -rf "$output" && mkdir -p "$output"
logged cpack --config "$build/CPackConfig.cmake" -G DEB -B "$output"
rm -rf "$output/_CPack_Packages"
packages=("$output"/*.deb)
((${#packages[@]} == 6)) || { echo "deb: error: ${#packages[@]} packages instead of 6" >&2 && exit 1; }
packaging/check_files.sh --packages "$output"

# Each tag that is overridden is explained in packaging/overrides.
lintian --allow-root --fail-on error,warning "${packages[@]}"
echo "lintian   no errors, no warnings"

if [ -n "${KILN_DEBIAN_ROOT:-}" ]; then
  cp -a "$KILN_DEBIAN_ROOT" "$work/root"
else
  mmdebstrap --quiet --variant=minbase --mode=root bookworm "$work/root" \
    "deb http://deb.debian.org/debian bookworm main" "deb http://deb.debian.org/debian-security bookworm-security main" ||
    { echo "deb: error: Debian's archive cannot be reached" >&2 && exit 1; }
fi
build/python/bin/python test/models/fill.py test/models/squeezenet1_1.onnx -o "$work/squeezenet1_1.onnx" >/dev/null
packaging/try.sh "$work/root" "$work/squeezenet1_1.onnx" \
  "$(build/python/bin/python -c 'import onnxruntime, pathlib; print(pathlib.Path(onnxruntime.__file__).parent.parent)')" "${packages[@]}"
du -k "${packages[@]}"
